package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/lenient"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// unitOfText is a unit as the informer keeps it.
func unitOfText(t *testing.T, version int, cpu, status string) lenient.Object {
	t.Helper()
	object, err := unitKind().Decode(fmt.Appendf(nil, `{"metadata":{"namespace":"a","name":"u","uid":"uid","resourceVersion":"%d","generation":%d},
		"spec":{"consumerRef":{"kind":"Thing"},"priority":3,"podSets":[{"name":"x","count":1,"requests":{"cpu":%s}}],"resource":{"cpu":%s,"memory":1024}},"status":%s}`,
		version, version, cpu, cpu, status))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := compactor{keepNothing}.compact(object)
	if err != nil {
		t.Fatal(err)
	}
	return kept.(lenient.Object)
}

func TestReadingAUnitThatCannotBeReadInFull(t *testing.T) {
	names := resources.NewNames()
	reader := newTestReader(names)
	for _, cpu := range []string{`"1e1.5"`, `"1e-1000000000"`} {
		u, err := reader.readAny(unitOfText(t, 7, cpu, `{"phase":"Running","attempts":2}`))
		if err != nil {
			t.Fatal(err)
		}
		if u.Key != "a/u" || u.UID != "uid" || u.Version != 7 || u.Phase != scheduler.Running || u.Attempts != 2 || u.Priority != 3 || !u.Partial {
			t.Errorf("%s: read as %+v", cpu, u)
		}
		memory, _ := u.Demand.Requests.Get(names.ID("memory"))
		if _, asks := u.Demand.Requests.Get(names.ID("cpu")); memory != 1024 || asks {
			t.Errorf("%s: it requests %v", cpu, u.Demand.Requests)
		}
		if u.Held == nil || u.Held.Reason != wellknown.ReasonInvalidRequest || !strings.Contains(u.Held.Sentence, "spec.resource.cpu: "+cpu) {
			t.Errorf("%s: held for %v", cpu, u.Held)
		}
	}
	stopped, err := reader.readAny(unitOfText(t, 7, `"1e1.5"`, `{"phase":"Running","conditions":[{"type":"Evicted","status":"True","reason":"SuspendedByUser","lastTransitionTime":"once"}]}`))
	if err != nil || !stopped.Stopped || stopped.Held.Reason != wellknown.ReasonSuspendedByUser {
		t.Errorf("one that has stopped is read as %+v, error %v", stopped, err)
	}
}

func TestAnUnreadableUnitIsReportedOfOncePerSpec(t *testing.T) {
	var reported []string
	units := unreadableUnits{emit: func(about *unstructured.Unstructured, kind string, reason wellknown.EventReason, message string) {
		reported = append(reported, fmt.Sprint(about.GetKind(), " ", about.GetNamespace(), "/", about.GetName(), " ", about.GetUID(), " ", kind, " ", reason, " ", about.GetGeneration()))
	}}
	see := func(generation int64, cpu string) {
		unit := unitOfText(t, 7, cpu, `{}`)
		unit.SetGeneration(generation)
		units.see(klog.Background(), unit)
	}
	see(1, `"1e1.5"`)
	see(1, `"1e1.5"`)
	see(2, `"1e2.5"`)
	see(3, `"1"`)
	see(2, `"1e2.5"`)
	units.gone("a/u")
	if len(units.reported) != 0 {
		t.Errorf("it remembers %v", units.reported)
	}
	is := func(generation int) string {
		return fmt.Sprint("QueueUnit a/u uid Warning UnreadableUnit ", generation)
	}
	if want := []string{is(1), is(2), is(2)}; !slices.Equal(reported, want) {
		t.Errorf("reported %q, want %q", reported, want)
	}
}
