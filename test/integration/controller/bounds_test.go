package controller

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// naming is a unit that requests 1m CPU and one of each named resource.
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

// olderSchema removes the bounds on resource names from the CRD, as in older releases, until the end of the test or
// until newer is called.
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
	// Apply the CRD as the installation does, which then restores it.
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

	// The API server accepts names up to the length that Kubernetes allows, but no longer ones.
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

	// Stored units can be changed, even with the newer schema.
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
