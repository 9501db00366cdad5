package sparkapplication

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kubeflow/spark-operator/v2/api/v1beta2"

	"kube-queue.dev/kube-queue/extensions/framework/adaptertest"
)

func TestSparkApplications(t *testing.T) { adaptertest.Run(t, New()) }

func TestDamagedSparkApplications(t *testing.T) { adaptertest.Fuzz(t, New()) }

// The operator runs an application again when any other field changes, even after its end.
func TestTheFenceFreezesEachFieldThatRunsAnApplicationAgain(t *testing.T) {
	frozen, spec := New().Kind().Fence.Frozen, reflect.TypeFor[v1beta2.SparkApplicationSpec]()
	for i := range spec.NumField() {
		name, _, _ := strings.Cut(spec.Field(i).Tag.Get("json"), ",")
		if name == "suspend" || name == "timeToLiveSeconds" {
			continue
		}
		if !slices.ContainsFunc(frozen, func(path []string) bool { return slices.Equal(path, []string{"spec", name}) }) {
			t.Errorf("spec.%s can change", name)
		}
	}
}
