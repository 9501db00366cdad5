package main

import (
	"encoding/json"
	"testing"

	controller "kube-queue.dev/kube-queue/cmd/kube-queue-controller/options"
	"kube-queue.dev/kube-queue/pkg/simulator/report"
	"kube-queue.dev/kube-queue/test/require"
)

// evictions returns the settings in force and the result of a run with the arguments.
func evictions(t *testing.T, args ...string) (*report.Preemption, *report.Evictions) {
	t.Helper()
	out, _ := run(t, exitClean, append([]string{"-o", "json"}, args...)...)
	var got struct {
		// The report encodes times as seconds and cannot decode them.
		Preemption *struct{ Reclaim, WithinQueue bool }
		Policies   []struct {
			All struct {
				Evictions *struct {
					Count, Reclaimed, Preempted int
					LostResourceHours           float64
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	e := got.Policies[0].All.Evictions
	if got.Preemption == nil || e == nil {
		if got.Preemption != nil || e != nil {
			t.Errorf("%v: settings %v, evictions %v", args, got.Preemption, e)
		}
		return nil, nil
	}
	return &report.Preemption{Reclaim: got.Preemption.Reclaim, WithinQueue: got.Preemption.WithinQueue},
		&report.Evictions{Count: e.Count, Reclaimed: e.Reclaimed, Preempted: e.Preempted, Lost: e.LostResourceHours}
}

func TestTheFlagsAboutEvictionsReachTheRun(t *testing.T) {
	plain := []string{"--trace", sample, capacity}
	if settings, _ := evictions(t, append(plain, "--reclaim=false")...); settings != nil {
		t.Errorf("jobs are evicted with --reclaim=false: %+v", settings)
	}
	settings, restart := evictions(t, plain...)
	if settings == nil || !settings.Reclaim || settings.WithinQueue || restart.Reclaimed == 0 || restart.Lost == 0 {
		t.Fatalf("settings %+v, evictions %+v", settings, restart)
	}
	if _, resume := evictions(t, append(plain, "--victims=resume")...); resume.Count == 0 || resume.Lost != 0 {
		t.Errorf("--victims=resume: %+v", resume)
	}
	if _, late := evictions(t, append(plain, "--min-run-time=10h")...); late.Count >= restart.Count {
		t.Errorf("--min-run-time changes nothing: %+v", late)
	}
	if _, slow := evictions(t, append(plain, "--stops-in=10m")...); *slow == *restart {
		t.Error("--stops-in changes nothing")
	}
	queue := []string{"--trace", file(t, "jobs.csv", "timestamp,duration,num_gpus,namespace,priority\n0,1000,8,a,0\n500,100,8,a,1\n"), "--capacity=nvidia.com/gpu=8"}
	settings, within := evictions(t, append(queue, "--reclaim=false", "--preempt-within-queue")...)
	if settings == nil || settings.Reclaim || !settings.WithinQueue || within.Preempted != 1 || within.Reclaimed != 0 {
		t.Errorf("--preempt-within-queue: settings %+v, evictions %+v", settings, within)
	}
}

func TestReclaimIsOnWhereItIsInTheController(t *testing.T) {
	if o := controller.New(); o.Reclaim != reclaimDefault || o.PauseBorrowing != pauseDefault {
		t.Errorf("the defaults of --reclaim and --pause-borrowing are %t and %t, but those of kube-queue-controller are %t and %t",
			reclaimDefault, pauseDefault, o.Reclaim, o.PauseBorrowing)
	}
}
