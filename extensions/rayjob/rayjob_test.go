package rayjob

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/extensions/framework/adaptertest"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
)

func TestJobs(t *testing.T) { adaptertest.Run(t, New()) }

func TestDamagedJobs(t *testing.T) { adaptertest.Fuzz(t, New()) }

func TestTheAcceptanceManifestRequestsWhatItsPodsWill(t *testing.T) {
	manifest, err := os.ReadFile("../../test/acceptance/rayjob.yaml")
	if err != nil {
		t.Fatal(err)
	}
	data, err := yaml.YAMLToJSON(manifest)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := decision.Observe(New(), data, nil, adaptertest.Usual())
	if err != nil || seen.Invalid != "" || !seen.Marked {
		t.Fatalf("error %v, invalid %q, marked %v", err, seen.Invalid, seen.Marked)
	}
	want := corev1.ResourceList{"cpu": resource.MustParse("900m"), "memory": resource.MustParse("456Mi")}
	if !equality.Semantic.DeepEqual(seen.Spec.Resource, want) {
		t.Errorf("the requests are %v, want %v", seen.Spec.Resource, want)
	}
}
