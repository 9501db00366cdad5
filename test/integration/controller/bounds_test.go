package controller

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/pkg/controller"
	"kube-queue.dev/kube-queue/pkg/metrics"
)

// naming is a unit that requests 1m CPU and one of each of these resources.
func naming(name string, resources ...string) *unstructured.Unstructured {
	list := map[string]any{"cpu": "1m"}
	for _, resource := range resources {
		list[resource] = "1"
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"consumerRef": map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "name": name}, "resource": list}}}
}

// tryToCreate reports whether the API server would accept the unit.
func (s *stage) tryToCreate(unit *unstructured.Unstructured) error {
	_, err := s.units.Create(s.Context(), unit, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// olderSchema removes the bounds of the names of resources from the CRD, as in older releases, until the
// end of the test or until the returned function is called.
func (s *stage) olderSchema() (newer func()) {
	s.Helper()
	text, err := os.ReadFile("../../../deploy/crds/scheduling.x-k8s.io_queueunits.yaml")
	must(s.T, err)
	crd := &unstructured.Unstructured{}
	must(s.T, yaml.Unmarshal(text, &crd.Object))
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	must(s.T, err)
	unstructured.RemoveNestedField(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties", "resource", "x-kubernetes-validations")
	must(s.T, unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
	text, err = yaml.Marshal(crd.Object)
	must(s.T, err)
	file := filepath.Join(s.TempDir(), "crd.yaml")
	must(s.T, os.WriteFile(file, text, 0o600))
	// As the installation does, which then restores it.
	_, err = cluster.Kubectl(s.Context(), "apply", "--server-side", "-f", file)
	must(s.T, err)
	newer = func() { must(s.T, cluster.Install(context.Background())) }
	s.Cleanup(newer)
	s.eventually("the schema is the older one", func() string {
		if err := s.tryToCreate(naming("probe", strings.Repeat("x", 318))); err != nil {
			return err.Error()
		}
		return ""
	})
	return newer
}

func TestNamesOfResourcesDoNotFreezeTheStatusOfOthers(t *testing.T) {
	s := newStage(t)
	startController(t)
	s.unit("first", `resource: {cpu: 1}`)
	s.used("1")

	// The API server accepts names as long as Kubernetes allows, and no longer ones.
	longest := strings.Repeat("p", 253) + "/" + strings.Repeat("n", 63)
	must(t, s.tryToCreate(naming("longest", longest)))
	if err := s.tryToCreate(naming("longer", longest+"n")); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "the name of a resource must be at most 317 characters long") {
		t.Errorf("a longer name: %v", err)
	}

	// With an older schema, it accepts units that would fill the status.
	newer := s.olderSchema()
	for _, name := range []string{"huge", "immense"} {
		_, err := s.units.Create(t.Context(), naming(name, strings.Repeat(name[:1], 720_000)), metav1.CreateOptions{})
		must(t, err)
		s.becomes(name, "reason", "InvalidRequest")
		want := `the unit is too large: spec.resource: the name of resource "` + strings.Repeat(name[:1], 40) + `"... has 720000 characters, but at most 317 are allowed; use a shorter name`
		if phase, message := s.status(name, "phase"), s.status(name, "message"); phase != "Enqueued" || message != want {
			t.Errorf("unit %s is %s: %s", name, phase, message)
		}
		s.isReported(name, 1, "The unit is too large: spec.resource: ")
	}
	s.unit("second", `resource: {cpu: 2}`)
	s.used("3")

	// What is stored can be changed, also with the newer schema.
	newer()
	s.eventually("the schema is the newer one", func() string {
		if s.tryToCreate(naming("probe", strings.Repeat("x", 318))) == nil {
			return "it accepts a long name"
		}
		return ""
	})
	s.patch("huge", `{"metadata": {"labels": {"a": "b"}, "finalizers": []}}`)
	s.patch("huge", `{"status": {"phase": "Succeeded"}}`, "status")
	must(t, s.units.Delete(t.Context(), "huge", metav1.DeleteOptions{}))
	s.unit("third", `resource: {cpu: 1}`)
	s.used("4")
}

// omitted returns how many resources the status of the root does not list, and how many it lists.
func (s *stage) omitted() (omitted int64, listed int) {
	s.Helper()
	tree, err := s.trees().Get(s.Context(), "tree", metav1.GetOptions{})
	must(s.T, err)
	nodes, _, _ := unstructured.NestedSlice(tree.Object, "status", "nodes")
	if len(nodes) == 0 {
		return 0, 0
	}
	root := nodes[0].(map[string]any)
	omitted, _, _ = unstructured.NestedInt64(root, "omittedResources")
	used, _, _ := unstructured.NestedMap(root, "used")
	return omitted, len(used)
}

func TestNamesOfUnitsThatAreGoneAreForgotten(t *testing.T) {
	const units, names = 40, 63
	waves := 6
	if testing.Short() {
		waves = 2
	}
	s := newStage(t)
	registry := metrics.New(metrics.ControllerProgram, "")
	startController(t, func(cfg *controller.Config) { cfg.Metrics = metrics.NewController(registry) })
	stored := func() int {
		w := httptest.NewRecorder()
		registry.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		found := regexp.MustCompile(`(?m)^kube_queue_resource_names (\d+)$`).FindStringSubmatch(w.Body.String())
		if found == nil {
			return 0
		}
		number, err := strconv.Atoi(found[1])
		must(t, err)
		return number
	}
	s.unit("first", `resource: {cpu: 1}`)
	s.used("1")
	most := 0
	for wave := range waves {
		for i := range units {
			var long []string
			for j := range names {
				text := fmt.Sprintf("%d-%d-%d", wave, i, j)
				long = append(long, strings.Repeat("p", 253)+"/"+strings.Repeat("n", 63-len(text))+text)
			}
			_, err := s.units.Create(t.Context(), naming(fmt.Sprint("naming-", i), long...), metav1.CreateOptions{})
			must(t, err)
		}
		s.eventually("the status counts what it does not list", func() string {
			if omitted, listed := s.omitted(); omitted != units*names-16 || listed != 17 {
				return fmt.Sprintf("%d are omitted and %d are listed", omitted, listed)
			}
			return ""
		})
		most = max(most, stored())
		for i := range units {
			must(t, s.units.Delete(t.Context(), fmt.Sprint("naming-", i), metav1.DeleteOptions{}))
		}
		s.used("1")
		if omitted, listed := s.omitted(); omitted != 0 || listed != 1 {
			t.Errorf("%d are omitted and %d are listed of units that are gone", omitted, listed)
		}
	}
	if most < units*names || most > 10_000 {
		t.Errorf("at most %d names were stored; want those of one wave, and fewer than 10,000 of all %d", most, waves*units*names)
	}
}
