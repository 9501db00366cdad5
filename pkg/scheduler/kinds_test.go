package scheduler_test

import (
	"testing"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/pods"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

func ofKind(kind scheduler.JobKind) func(*scheduler.Unit) {
	return func(u *scheduler.Unit) { u.Kind = kind }
}

// turnOff lets job-extensions queue all kinds except these.
func (w *world) turnOff(kinds ...scheduler.JobKind) {
	w.off = map[scheduler.JobKind]*quota.Refusal{}
	for _, kind := range kinds {
		w.off[kind] = &quota.Refusal{Reason: wellknown.ReasonKindNotQueued, Sentence: "the kind is not queued"}
	}
	w.core.Apply(w.now, scheduler.KindsChanged{Off: w.off})
	w.check()
}

func TestAUnitWhoseKindIsOffWaitsUntilItIsOnAgain(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	w.enqueue("a/runs", cpu("4"), ofKind(1))
	w.enqueue("a/off", cpu("4"), ofKind(1))
	w.turnOff(1)
	w.submit("a/then", cpu("3"), ofKind(1))
	w.after(time.Second)
	w.finish("a/runs") // no matter who ends it
	w.submit("a/on", cpu("1"), ofKind(2))
	w.after(time.Minute)
	expectReleased(t, w, "a/on")
	for _, key := range []string{"a/off", "a/then"} {
		if u := w.units[key]; u.Reason != wellknown.ReasonKindNotQueued || u.Quota != "root" {
			t.Errorf("unit %s waits in quota %q for %q", key, u.Quota, u.Reason)
		}
	}
	w.end("a/on")
	w.turnOff()
	w.after(time.Second)
	expectReleased(t, w, "a/off")
}

// The controller may admit a unit just before it learns that the job will never be released.
func TestAUnitThatWasAdmittedWhenItsKindIsTurnedOffGivesItsQuotaBackUnlessItHasPods(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("12"), "a"))
	w.submit("a/job", cpu("4"), ofKind(1))
	w.submit("a/unreleased", cpu("4"), ofKind(1))
	w.submit("a/gated", cpu("4"), ofKind(1))
	w.settle()
	expectReleased(t, w, "a/gated", "a/job", "a/unreleased")
	placed(w, "")
	w.pod(pods.Pod{Namespace: "a", UID: "gated", Owner: w.units["a/gated"].Owner, Idle: true})
	w.turnOff(1)
	w.after(scheduler.PodlessAfter - time.Second)
	if u := w.units["a/unreleased"]; !holds(u) {
		t.Fatalf("it gives its quota back at once, so that a job that was just released would run without quota: %+v", u)
	}
	if view := w.core.View(w.now, w.names); len(view.Units) != 3 || view.Units[0].Refusal == nil || view.Units[0].Refusal.Reason != wellknown.ReasonKindNotQueued {
		t.Errorf("an answer about an admitted unit does not say that its kind is off: %+v", view.Units)
	}
	w.after(time.Second)
	for _, key := range []string{"a/unreleased", "a/gated"} {
		if u := w.units[key]; holds(u) || u.Reason != wellknown.ReasonKindNotQueued {
			t.Errorf("%s holds its quota in phase %v, reason %q", key, u.Phase, u.Reason)
		}
	}
	w.after(time.Hour)
	if u := w.units["a/job"]; !holds(u) {
		t.Errorf("a unit with pods has lost its quota: %+v", u)
	}
}
