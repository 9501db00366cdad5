// Package provisioning tests that the API server accepts the pod templates of ProvisioningRequests. test/e2e/provisioning
// tests the requests themselves.
package provisioning

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/adaptertest"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/extensions/provisioning"
	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/test/clustertest"
)

// testCase is the part of a case of testdata that describes a job.
type testCase struct {
	Name         string
	Job, Related map[string]any
	Invalid      string
}

// The API server accepts the templates of all jobs in the test data of all kinds, with everything that
// their pods may have.
func TestTheAPIServerAcceptsTheTemplatesOfEachKind(t *testing.T) {
	cluster := clustertest.ForTest(t, clustertest.Options{OnlyAPI: true})
	client, err := kubernetes.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	for _, adapter := range registry.All() {
		kind, accepted := adapter.Kind(), 0
		for _, test := range casesOf(t, cluster.Repository, kind.Name) {
			for _, template := range planOf(t, adapter, test).Templates {
				if len(template.Template.Spec.Containers) == 0 {
					continue // the API server, or the operator, refuses the job itself
				}
				template.Namespace, template.OwnerReferences = metav1.NamespaceDefault, nil
				_, err := client.CoreV1().PodTemplates(template.Namespace).Create(t.Context(), template, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				if err != nil {
					t.Errorf("%s: %s: %v", kind.Name, test.Name, err)
					continue
				}
				accepted++
			}
		}
		// The pods of a Workflow are unknown.
		if (accepted == 0) != (kind.Kind == "Workflow") {
			t.Errorf("%s: %d templates are accepted", kind.Name, accepted)
		}
	}
}

// casesOf returns the valid jobs of a kind.
func casesOf(t *testing.T, repository, name string) (all []testCase) {
	t.Helper()
	folders := map[string]string{"mpiv1": "mpijob/testdata/mpiv1", "mpiv2beta1": "mpijob/testdata/mpiv2beta1", "sparkapp": "sparkapplication/testdata"}
	folder := folders[name]
	if folder == "" {
		folder = name + "/testdata"
	}
	files, err := filepath.Glob(filepath.Join(repository, "extensions", folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no test data: %v", name, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for text := range strings.SplitSeq(string(data), "\n---\n") {
			var test testCase
			if err := yaml.Unmarshal([]byte(text), &test); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if test.Job != nil && test.Invalid == "" {
				all = append(all, test)
			}
		}
	}
	return all
}

// planOf returns the plan for a job; it is empty if the job has no pods, or none that are known.
func planOf(t *testing.T, adapter framework.Adapter, test testCase) *provisioning.Plan {
	t.Helper()
	job, related := encode(t, test.Job), encode(t, test.Related)
	observed, err := decision.Observe(adapter, job, related, adaptertest.Usual())
	if err != nil {
		t.Fatalf("%s: %v", test.Name, err)
	}
	unit := &v1alpha1.QueueUnit{Spec: observed.Spec}
	unit.Namespace, unit.Name, unit.UID, unit.Status.Reservations = metav1.NamespaceDefault, "unit", "u1", 1
	config := &v1alpha1.ProvisioningRequestConfigSpec{ProvisioningClassName: "class.example.com"}
	if len(provisioning.Managed(unit, config)) == 0 {
		return &provisioning.Plan{}
	}
	whole, err := decision.ReadAs(adapter, adapter.Kind().Version).Decode(job)
	if err != nil {
		t.Fatal(err)
	}
	readable, _ := decision.Readable(whole)
	var other framework.Object
	if reader, reads := adapter.(framework.RelatedReader); reads && related != nil {
		if other, err = decision.ReadRelatedAs(adapter.Kind().Related, reader).Decode(related); err != nil {
			t.Fatal(err)
		}
	}
	pods, err := decision.Pods(adapter, readable, other)
	if err != nil {
		t.Fatalf("%s: %v", test.Name, err)
	}
	plan, refused := provisioning.PlanOf(provisioning.Input{Unit: unit, Check: "nodes", ConfigName: "config", Config: config, Pods: pods.Sets, Cluster: adaptertest.Usual()})
	switch {
	case refused == nil:
		return plan
	case strings.Contains(refused.Message, "declared as a sum"):
		return &provisioning.Plan{}
	}
	t.Errorf("%s: refused: %s %s", test.Name, refused.State, refused.Message)
	return &provisioning.Plan{}
}

func encode(t *testing.T, object map[string]any) []byte {
	t.Helper()
	if object == nil {
		return nil
	}
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
