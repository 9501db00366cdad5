package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/perf/rig"
	"kube-queue.dev/kube-queue/test/testmode"
)

// TestRunNames checks that the units of all rounds and the others are shown, which the run itself waits
// for.
func TestRunNames(t *testing.T) {
	testmode.OnlyInTestAll(t, "it tests a measurement, and TestRunUnits tests the rig that all measurements share")
	r, err := rig.Start(t.Context(), rig.Options{OnlyAPI: true, Profiling: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	run, err := (&namesFlags{units: 20, names: 63, rounds: 2, inFlight: 8}).prepare(r, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	run.patience, run.rest = time.Minute, time.Second
	figures, err := run.measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	expect(t, figures, "units", "names of resources", 2520)
	positive(t, figures, "other units meanwhile", "shown in the status of the tree")
	positive(t, figures, "memory of "+rig.Controller, "without units", "before", "after")
	positive(t, figures, "memory of "+rig.Extensions, "without units", "before", "after")
}

func TestNamesRejectsWrongFlags(t *testing.T) {
	for _, args := range [][]string{{"--units=0"}, {"--names=0"}, {"--names=64"}, {"--rounds=0"}, {"--in-flight=0"}} {
		var errors strings.Builder
		if code := run(t.Context(), append([]string{"names"}, args...), world{out: io.Discard, err: &errors}); code != 2 {
			t.Errorf("%v: status %d, want 2: %s", args, code, errors.String())
		}
	}
}

func TestALongNameIsAsLongAsItMayBe(t *testing.T) {
	if name := longName("9-9999-9"); len(name) != 317 || !strings.HasSuffix(name, "9-9999-9") {
		t.Errorf("%q has %d characters", name, len(name))
	}
}
