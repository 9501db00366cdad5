package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/perf/rig"
	"kube-queue.dev/kube-queue/test/perf/scenario"
)

// startRig starts a rig for a test. Its logs are kept if the test fails.
func startRig(t *testing.T, options rig.Options) *rig.Rig {
	t.Helper()
	r, err := rig.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		end := r.Close
		if t.Failed() {
			t.Logf("the logs are in %s", r.Cluster.Data)
			end = r.CloseAndKeep
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// TestRunUnits checks counts only, because durations depend on the machine.
func TestRunUnits(t *testing.T) {
	r := startRig(t, rig.Options{OnlyAPI: true})
	t.Run("each unit of a stream is released and ended once", func(t *testing.T) { stream(t, r) })
	t.Run("the units of a backlog are released up to its quota", func(t *testing.T) { backlog(t, r) })
}

// playAll runs a scenario and returns the report that was written to a file.
func playAll(t *testing.T, r *rig.Rig, name string) *report.Report {
	t.Helper()
	s, err := scenario.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	figures, err := playUnits(t.Context(), r, s, "", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "figures.json")
	if err := figures.WriteFile(file); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	read := &report.Report{}
	if err := json.Unmarshal(data, read); err != nil {
		t.Fatal(err)
	}
	for _, section := range read.Sections {
		if len(section.Figures) == 0 {
			t.Errorf("section %s is empty", section.Name)
		}
	}
	return read
}

// expect compares a figure other than a duration.
func expect(t *testing.T, r *report.Report, section, name string, want float64) {
	t.Helper()
	switch f := r.Find(section, name); {
	case f == nil:
		t.Errorf("there is no figure %q in section %q", name, section)
	case f.Value != want:
		t.Errorf("%s, %s: %v, want %v", section, name, f.Value, want)
	}
}

// positive checks that figures are above 0.
func positive(t *testing.T, r *report.Report, section string, names ...string) {
	t.Helper()
	for _, name := range names {
		if f := r.Find(section, name); f == nil || f.Value <= 0 {
			t.Errorf("section %q, figure %q: got %+v", section, name, f)
		}
	}
}

func stream(t *testing.T, r *rig.Rig) {
	figures := playAll(t, r, "smoke")
	for name, want := range map[string]float64{"units": 200, "released": 200, "ended": 200, "released more than once": 0} {
		expect(t, figures, "in all", name, want)
	}
	positive(t, figures, "in all", "wall", "rate", "useful work")
	for class, want := range map[string]float64{"small": 140, "medium": 40, "large": 20, "all": 200} {
		expect(t, figures, "wait from create to release, "+class, "measured", want)
		positive(t, figures, "wait from create to release, "+class, "mean", "p50", "p90", "p99", "max")
	}
	expect(t, figures, "release answered to release seen", "measured", 200)

	writes := figures.Find("writes", "kube-queue's, of units")
	if writes == nil || writes.Value < 1 || writes.Value > 1.2 || writes.Met == nil || !*writes.Met {
		t.Errorf("kube-queue's writes are %+v, want 1 to 1.2 a unit", writes)
	}
	expect(t, figures, "writes", "perf-player: create queueunits.scheduling.x-k8s.io", 1)
	expect(t, figures, "writes", "perf-player: patch queueunits.scheduling.x-k8s.io/status", 1)
	positive(t, figures, "processor time", "kube-apiserver", "etcd", rig.Controller, rig.Tool)
	positive(t, figures, "memory", "kube-apiserver, peak", "etcd, peak", rig.Controller+", peak", rig.Tool+", peak")
}

func backlog(t *testing.T, r *rig.Rig) {
	figures := playAll(t, r, "smoke-backlog")
	expect(t, figures, "waiting", "units", 120)
	positive(t, figures, "waiting", "created, each with a reason, after", "controller, memory")
	if figures.Find("waiting", rig.Controller+", idle") == nil {
		t.Error("there is no figure of the idle controller")
	}
	expect(t, figures, "room is made", "released", 60)
	expect(t, figures, "room is made", "released more than once", 0)
	positive(t, figures, "room is made", "rate")
	expect(t, figures, "controller is killed, room is made and it starts", "released", 12)
	positive(t, figures, "controller is killed, room is made and it starts", "first release after")
}

func TestErrorsOfTheCommandLineListKnownValues(t *testing.T) {
	for args, want := range map[string]string{
		"frobnicate":                      `unknown command "frobnicate"; known commands: units, jobs, pods, names, reviews, ceiling`,
		"units --bogus":                   "unknown flag: --bogus",
		"units extra":                     `unexpected argument "extra"`,
		"units --scenario=none":           `unknown scenario "none"; known scenarios: baseline,`,
		"units --policy=Random":           "known policies: RoundRobin, Block, Priority",
		"units --scenario=./no-such.yaml": "no-such.yaml",
		"units --stretch=0":               "--stretch: must be between 0.01 and 100, not 0",
		"ceiling --units=0":               "--units 0: must be 1 or more",
		"ceiling --in-flight=-1":          "--in-flight -1: must be 1 or more",
		"ceiling --units=many":            "--units",
	} {
		t.Run(args, func(t *testing.T) {
			var out, errs strings.Builder
			code := run(t.Context(), strings.Fields(args), world{out: &out, err: &errs})
			if code != 2 || !strings.Contains(errs.String(), want) || out.Len() > 0 {
				t.Errorf("status %d, %q, want %q", code, errs.String(), want)
			}
		})
	}
}

func TestHelpListsTheFlags(t *testing.T) {
	for _, c := range commands() {
		var out strings.Builder
		if code := run(t.Context(), []string{c.name, "--help"}, world{out: &out, err: &out}); code != 0 {
			t.Errorf("%s: status %d", c.name, code)
		}
		for _, want := range []string{"perf " + c.name, c.summary, "--json FILE", "--enforce"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("the help of %s has no %q:\n%s", c.name, want, out.String())
			}
		}
	}
}
