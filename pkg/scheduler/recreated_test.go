package scheduler_test

import (
	"testing"
	"time"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/test/require"
)

// A unit is deleted and created again with the same name. The read after a conflict shows the new unit before the
// informer reports the last changes of the old one.
func TestLateEventsOfADeletedUnitDoNotAffectTheUnitThatReplacedIt(t *testing.T) {
	names := resources.NewNames()
	backend, _, err := tree.New(names, leaf("root", cpu("4"), "*"), tree.Options{})
	require.NoError(t, err)
	core := scheduler.New(roundRobin())
	now := time.Unix(0, 0)
	core.Apply(now, scheduler.QuotaChanged{Backend: backend})
	request := func(cpus int64) resources.Vector {
		return resources.Vector{{ID: names.ID(quota.JobsResource), Value: 1}, {ID: names.ID("cpu"), Value: cpus * 1000}}
	}
	at := func(key, uid string, version uint64, cpus int64, phase scheduler.Phase) scheduler.Unit {
		u := scheduler.Unit{Key: key, Facts: scheduler.Facts{UID: uid, Version: version, Phase: phase}}
		u.Demand.Requests, u.Demand.Preemptible = request(cpus), true
		return u
	}

	core.Apply(now, scheduler.UnitChanged{Unit: at("a/one", "old", 1, 1, scheduler.Waiting)})
	plan, _ := core.Next(now)
	if len(plan) != 1 || plan[0].Kind != scheduler.Dequeue {
		t.Fatalf("the plan is %+v, want one Dequeue", plan)
	}
	replaced := at("a/one", "new", 9, 3, scheduler.Running)
	core.Apply(now, scheduler.Refused{Write: &plan[0], Now: &replaced})
	core.Apply(now, scheduler.UnitChanged{Unit: at("a/one", "old", 5, 1, scheduler.Waiting)})
	core.Apply(now, scheduler.UnitGone{Key: "a/one", UID: "old"})
	core.Apply(now, scheduler.UnitChanged{Unit: at("a/two", "two", 10, 3, scheduler.Waiting)})
	if plan, _ = core.Next(now); len(plan) != 0 {
		t.Errorf("the plan is %+v, want none: 3 of 4 cpu are used by the unit that was created again", plan)
	}
	require.NoError(t, core.Check())
	core.Apply(now, scheduler.UnitGone{Key: "a/one", UID: "new"})
	if plan, _ = core.Next(now); len(plan) != 1 || plan[0].Key != "a/two" {
		t.Errorf("the plan is %+v, want a Dequeue of a/two", plan)
	}
}
