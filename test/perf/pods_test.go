package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/perf/rig"
	"kube-queue.dev/kube-queue/test/testmode"
)

// TestRunPods checks that what the pods request is charged, which the run itself waits for.
func TestRunPods(t *testing.T) {
	testmode.OnlyInTestAll(t, "it tests a measurement, and TestRunUnits tests the rig that all measurements share")
	r, err := rig.Start(t.Context(), rig.Options{OnlyAPI: true, WithoutPolicies: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	run, err := (&podsFlags{pods: 300, changes: 50, inFlight: 8, idle: time.Second}).prepare(r, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	figures, err := run.measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	expect(t, figures, "cluster", "pods", 300)
	expect(t, figures, "cluster", "units", 3)
	positive(t, figures, "idle", "memory of the controller")
	positive(t, figures, "changes of pods", "memory of the controller")
}

func TestPodsRejectsWrongFlags(t *testing.T) {
	for _, args := range [][]string{{"--pods=150"}, {"--pods=0"}, {"--changes=-1"}, {"--in-flight=0"}, {"--idle=1ms"}} {
		var errors strings.Builder
		if code := run(t.Context(), append([]string{"pods"}, args...), world{out: io.Discard, err: &errors}); code != 2 {
			t.Errorf("%v: status %d, want 2: %s", args, code, errors.String())
		}
	}
}
