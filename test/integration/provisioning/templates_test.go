// Package provisioning tests that the API server accepts the pod templates of ProvisioningRequests. test/e2e/provisioning
// tests the requests themselves.
package provisioning

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/adaptertest"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/extensions/provisioning"
	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

// The API server accepts the templates of all jobs in the test data of all kinds, with everything that their pods may
// contain.
func TestTheAPIServerAcceptsTheTemplatesOfEachKind(t *testing.T) {
	cluster := clustertest.ForTest(t, clustertest.Options{OnlyAPI: true})
	client, err := kubernetes.NewForConfig(cluster.Config())
	harness.Must(t, err)
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
func casesOf(t *testing.T, repository, name string) []adaptertest.Case {
	t.Helper()
	folder := cmp.Or(map[string]string{"mpiv1": "mpijob", "mpiv2beta1": "mpijob", "sparkapp": "sparkapplication"}[name], name)
	all := adaptertest.Cases(t, filepath.Join(repository, "extensions", folder, "testdata"), name)
	return slices.DeleteFunc(all, func(c adaptertest.Case) bool { return c.Invalid != "" })
}

// planOf returns the plan for a job. It is empty if the job has no known pods.
func planOf(t *testing.T, adapter framework.Adapter, test adaptertest.Case) *provisioning.Plan {
	t.Helper()
	observed, err := decision.Observe(adapter, test.Job, test.Related, adaptertest.Usual())
	if err != nil {
		t.Fatalf("%s: %v", test.Name, err)
	}
	unit := &v1alpha1.QueueUnit{Spec: observed.Spec}
	unit.Namespace, unit.Name, unit.UID, unit.Status.Reservations = metav1.NamespaceDefault, "unit", "u1", 1
	config := &v1alpha1.ProvisioningRequestConfigSpec{ProvisioningClassName: "class.example.com"}
	if len(provisioning.Managed(unit, config)) == 0 {
		return &provisioning.Plan{}
	}
	whole, err := decision.ReadAs(adapter, adapter.Kind().Version).Decode(test.Job)
	harness.Must(t, err)
	readable, _ := decision.Readable(whole)
	var other framework.Object
	if reader, reads := adapter.(framework.RelatedReader); reads && test.Related != nil {
		if other, err = decision.ReadRelatedAs(adapter.Kind().Related, reader).Decode(test.Related); err != nil {
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
