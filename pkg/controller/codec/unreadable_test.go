package codec

import (
	"fmt"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/lenient"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/test/require"
)

// unitOfText returns a unit as the informer stores it.
func unitOfText(t *testing.T, version int, cpu, status string) lenient.Object {
	t.Helper()
	object, err := UnitKind().Decode(fmt.Appendf(nil, `{"metadata":{"namespace":"a","name":"u","uid":"uid","resourceVersion":"%d","generation":%d},
		"spec":{"consumerRef":{"kind":"Thing"},"priority":3,"podSets":[{"name":"x","count":1,"requests":{"cpu":%s}}],"resource":{"cpu":%s,"memory":1024}},"status":%s}`,
		version, version, cpu, cpu, status))
	require.NoError(t, err)
	kept, err := Compactor{}.compact(object)
	require.NoError(t, err)
	return kept.(lenient.Object)
}

func TestReadingAUnitThatCannotBeReadInFull(t *testing.T) {
	names := resources.NewNames()
	reader := newTestReader(names)
	for _, cpu := range []string{`"1e1.5"`, `"1e-1000000000"`} {
		u, err := reader.Read(unitOfText(t, 7, cpu, `{"phase":"Running","attempts":2}`))
		require.NoError(t, err)
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
	stopped, err := reader.Read(unitOfText(t, 7, `"1e1.5"`, `{"phase":"Running","conditions":[{"type":"Evicted","status":"True","reason":"SuspendedByUser","lastTransitionTime":"once"}]}`))
	if err != nil || !stopped.Stopped || stopped.Held.Reason != wellknown.ReasonSuspendedByUser {
		t.Errorf("one that has stopped is read as %+v, error %v", stopped, err)
	}
}

func TestAUnitBeyondTheBoundsIsNotAdmittedAndKeepsWhatItHolds(t *testing.T) {
	names := resources.NewNames()
	reader := newTestReader(names)
	read := func(long int, phase string) scheduler.Unit {
		object, err := UnitKind().Decode(fmt.Appendf(nil, `{"metadata":{"namespace":"a","name":"u","uid":"uid","resourceVersion":"7","generation":1},
			"spec":{"consumerRef":{"kind":"Thing"},"quotaName":"q","resource":{"cpu":1,"%s":1}},"status":{"phase":%q}}`, strings.Repeat("x", long), phase))
		require.NoError(t, err)
		u, err := reader.ReadComplete(object)
		require.NoError(t, err)
		return u
	}
	if u := read(63, ""); u.Held != nil || u.Partial {
		t.Errorf("one within the bounds is held: %+v", u.Held)
	}
	for _, phase := range []string{"", "Running"} {
		u := read(720_000, phase)
		cpu, _ := u.Demand.Requests.Get(names.ID("cpu"))
		if len(u.Demand.Requests) != 2 || cpu != 1000 || !u.Partial || u.QuotaName != "q" {
			t.Errorf("phase %q: it requests %v of quota %q", phase, u.Demand.Requests, u.QuotaName)
		}
		want := `the unit is too large: spec.resource: the name of resource "` + strings.Repeat("x", 40) + `"... has 720000 characters, but at most 317 are allowed; use a shorter name`
		if u.Held == nil || u.Held.Reason != wellknown.ReasonInvalidRequest || u.Held.Sentence != want {
			t.Errorf("phase %q: held for %+v", phase, u.Held)
		}
	}
	if names.Len() != 3 {
		t.Errorf("%d names are stored, want that of max-jobs, cpu and one of 63 characters", names.Len())
	}
	if u := read(720_000, "Succeeded"); u.Phase != scheduler.Ended || u.Held != nil {
		t.Errorf("one that has ended is held: %+v", u.Held)
	}
}
