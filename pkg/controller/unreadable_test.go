package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/klog/v2"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
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
	units := unreadableUnits{emit: func(n backend.Notice) {
		reported = append(reported, fmt.Sprint(n.About.GetKind(), " ", n.About.GetNamespace(), "/", n.About.GetName(), " ", n.About.GetUID(), " ", n.Type, " ", n.Reason, " ", n.EventKey()))
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

func TestAUnitBeyondTheBoundsIsNotAdmittedAndKeepsWhatItHolds(t *testing.T) {
	names := resources.NewNames()
	reader := newTestReader(names)
	read := func(long int, phase string) scheduler.Unit {
		object, err := unitKind().Decode(fmt.Appendf(nil, `{"metadata":{"namespace":"a","name":"u","uid":"uid","resourceVersion":"7","generation":1},
			"spec":{"consumerRef":{"kind":"Thing"},"quotaName":"q","resource":{"cpu":1,"%s":1}},"status":{"phase":%q}}`, strings.Repeat("x", long), phase))
		if err != nil {
			t.Fatal(err)
		}
		u, err := reader.readComplete(object)
		if err != nil {
			t.Fatal(err)
		}
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
	// It is reported like one that cannot be read.
	var reported []string
	units := unreadableUnits{emit: func(n backend.Notice) {
		reported = append(reported, string(n.Reason)+" "+n.Message)
	}}
	object, err := unitKind().Decode([]byte(`{"metadata":{"namespace":"a","name":"u","uid":"uid","resourceVersion":"7","generation":1},"spec":{"quotaName":"` + strings.Repeat("q", 254) + `"}}`))
	if err != nil {
		t.Fatal(err)
	}
	units.see(klog.Background(), reader.compacted(object))
	if len(reported) != 1 || !strings.HasPrefix(reported[0], "UnreadableUnit The unit is too large: spec.quotaName has 254 characters, but at most 253 are allowed; ") {
		t.Errorf("reported %q", reported)
	}
}
