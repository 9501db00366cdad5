package decision

import (
	"testing"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
)

func TestDecisionsAboutPodsAtTheGate(t *testing.T) {
	gated := func(s *State) { s.Gated, s.ShowsQueuing, s.Stopped = true, false, true }
	open := func(s *State) { s.Suspended, s.Stopped = false, false }
	leaving := func(s *State) { s.Stopped = false }
	passing := func(s *State) { s.Passing = 1 }
	fresh := func(s *State) { s.Created = noon.Add(time.Minute) }
	dequeued := func(u *v1alpha1.QueueUnit) { u.Status.Phase, u.Status.Attempts = v1alpha1.PhaseDequeued, 1 }
	waits := func(u *v1alpha1.QueueUnit) { u.Status.Phase, u.Status.Reason = v1alpha1.PhaseEnqueued, "QuotaExceeded" }
	runs := func(u *v1alpha1.QueueUnit) { u.Status.Phase, u.Status.Attempts = v1alpha1.PhaseRunning, 1 }
	for _, c := range []struct {
		name string
		job  State
		unit func(*v1alpha1.QueueUnit)
		want Action
	}{
		{"a pod waits", job(gated), nil, CreateUnit},
		{"somebody who may has opened its gate", job(gated, open), nil, Nothing},
		{"while its unit waits", job(gated, open), waits, LeaveQueue},
		{"just after its unit was admitted", job(gated, open), dequeued, LeaveQueue},
		{"one of a group that was admitted", job(gated, open, passing), dequeued, Release},
		{"a pod was released just before its unit was lost", job(gated, open, started, fresh, was("1")), nil, RestoreUnit},
		{"a pod of a released group is replaced", job(gated, open, was("1"), passing), runs, Release},
		{"all are replaced", job(gated, passing), runs, Release},
		{"pods wait for those that are being deleted", job(gated, leaving), runs, Nothing},
		{"pods cannot replace those that are gone", job(gated), runs, LeaveQueue},
		{"no pod is held again that was released without a unit", job(gated, leaving, was("1")), nil, Nothing},
	} {
		t.Run(c.name, func(t *testing.T) {
			var u *v1alpha1.QueueUnit
			if c.unit != nil {
				u = unit(c.unit)
			}
			if got := Decide(c.job, u, same(), noon.Add(time.Minute)); got.Action != c.want {
				t.Errorf("%+v, want %s", got, c.want)
			}
		})
	}
	ended := job(gated, ended)
	if !Continues(ended, nil) || Continues(ended, unit(runs)) || Continues(State{JobState: framework.JobState{Suspended: true}}, nil) {
		t.Error("what waits at the gate continues a job wrongly")
	}
}
