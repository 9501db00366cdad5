package metrics_test

import (
	"testing"

	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/pkg/metrics"
)

func TestEachKindThatCanBeQueuedIsAFramework(t *testing.T) {
	for _, adapter := range registry.All() {
		kind := adapter.Kind().Kind
		if metrics.Framework(kind) != kind {
			t.Errorf("%s is %s", kind, metrics.Framework(kind))
		}
		if got := metrics.FrameworkOf(decision.UnitName(kind, "some-job", "uid")); got != kind {
			t.Errorf("a unit of a %s is reported to be of a %s", kind, got)
		}
	}
	for _, name := range []string{"", "-", "mine", "my-unit", "a-job", "job-0123456789"} {
		if got := metrics.FrameworkOf(name); got != "other" {
			t.Errorf("unit %q is reported to be of a %s", name, got)
		}
	}
}
