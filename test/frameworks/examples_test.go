package frameworks

import (
	"fmt"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"

	"kube-queue.dev/kube-queue/test/acceptance/kinds"
	"kube-queue.dev/kube-queue/test/harness"
)

// holdExample applies the unchanged file of examples/ in a namespace without quota: the API server holds the job, and
// its unit requests what examples/README.md says.
func (s *scene) holdExample(t *testing.T, specimen specimen) {
	l := s.suite.Part(t, "example-"+specimen.extension)
	file := filepath.Join(s.suite.Repository, "examples", kinds.File(specimen.sample.Kind))
	name := specimen.sample.Job().GetName()
	_, err := s.suite.Kubectl(t.Context(), "apply", "--namespace", l.Namespace, "-f", file)
	harness.Must(t, err)
	held := &story{specimen: specimen, Env: l, t: t}
	if !held.suspended(l.Object(specimen.resource, name)) {
		t.Errorf("%s %s is not suspended", specimen.kind, name)
	}
	want := specimen.sample.Total
	harness.Eventually(t, patience, fmt.Sprintf("the unit of %s requests %s", name, text(want)), func() (bool, string) {
		unit := l.WaitForUnit(specimen.kind, name)
		return equality.Semantic.DeepEqual(unit.Spec.Resource, want), text(unit.Spec.Resource)
	})
	l.WaitForReason(specimen.kind, name, "NoQuota")
	if pods := l.Pods(name); len(pods) > 0 {
		t.Errorf("%d pods before the release", len(pods))
	}
}
