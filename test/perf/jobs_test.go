package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"kube-queue.dev/kube-queue/test/built"
	"kube-queue.dev/kube-queue/test/perf/jobs"
	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/testmode"
)

// perfJobs runs perf jobs and returns its report.
func perfJobs(t *testing.T, args ...string) *report.Report {
	t.Helper()
	file := filepath.Join(t.TempDir(), "figures.json")
	var out, progress strings.Builder
	args = append([]string{"jobs", "--json", file}, args...)
	if code := run(t.Context(), args, world{out: &out, err: &progress}); code != 0 {
		t.Fatalf("perf %v: exit status %d\n%s", args, code, progress.String())
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	figures := &report.Report{}
	if err := json.Unmarshal(data, figures); err != nil {
		t.Fatal(err)
	}
	for _, s := range figures.Sections {
		if !strings.Contains(out.String(), "\n"+s.Name+"\n") {
			t.Errorf("the table has no section %q", s.Name)
		}
	}
	return figures
}

func figure(t *testing.T, figures *report.Report, section, name string) float64 {
	t.Helper()
	f := figures.Find(section, name)
	if f == nil {
		t.Fatalf("there is no figure %q in %q", name, section)
	}
	return f.Value
}

// TestJobsCompleteInEachQueue checks counts only, because durations depend on the machine.
func TestJobsCompleteInEachQueue(t *testing.T) {
	testmode.OnlyInTestAll(t, "it tests a measurement, and TestRunUnits tests the rig that all measurements share")
	const count = 30
	folder, err := built.Programs(t.Context(), ".", "kube-queue.dev/kube-queue/test/perf/noopqueue")
	if err != nil {
		t.Fatal(err)
	}
	noopqueue := filepath.Join(folder, "noopqueue")
	const labelled = "label:perf.kube-queue.dev/noop=yes"
	figures := perfJobs(t, fmt.Sprintf("--jobs=%d", count), "--run-time=100ms", "--nodes=2", "--queue="+labelled, "--queue="+jobs.KubeQueue,
		"--with="+noopqueue+" --label=perf.kube-queue.dev/noop=yes")

	for _, queue := range []string{labelled, jobs.KubeQueue} {
		for section, name := range map[string]string{"": "jobs", ": create to release": "jobs", ": create to first pod": "jobs", ": create to pod bound": "jobs"} {
			if got := figure(t, figures, queue+section, name); got != count {
				t.Errorf("%s%s: %v jobs, want %d", queue, section, got, count)
			}
		}
		for _, process := range []string{"kube-apiserver", "etcd", "kube-controller-manager", "kube-scheduler", "kwok", "perf"} {
			if got := figure(t, figures, queue+": CPU and memory", process+", peak memory"); got <= 0 {
				t.Errorf("%s: %s has %v MiB", queue, process, got)
			}
		}
		if got := figure(t, figures, queue+": API writes a job", "  create jobs.batch"); got != 1 {
			t.Errorf("%s: %v creates a job", queue, got)
		}
	}

	// A job may cost five writes, six if it ran long, and eight if it waited. On a slow machine it
	// may wait.
	if got := figure(t, figures, "kube-queue: API writes a job", "kube-queue, on jobs, units and events"); got < 5 || got > 8 {
		t.Errorf("kube-queue makes %v writes a job", got)
	}
	for _, write := range []string{"  create queueunits.scheduling.x-k8s.io", "  patch jobs.batch"} {
		if got := figure(t, figures, "kube-queue: API writes a job", write); got != 1 {
			t.Errorf("kube-queue: %v times%s a job", got, write)
		}
	}
	if got := figure(t, figures, labelled+": API writes a job", "noopqueue"); got != 5 {
		t.Errorf("the plain queue makes %v writes a job", got)
	}
	if figures.Find(labelled+": API writes a job", "job-extensions") != nil || figures.Find("kube-queue: API writes a job", "plain") != nil {
		t.Error("two queues ran at the same time")
	}
}

func TestInvalidFlagsOfJobsAreRefused(t *testing.T) {
	for args, want := range map[string]string{
		"--jobs=0":               "--jobs 0: must be 1 or more",
		"--rate=-1":              "--rate -1: must not be negative",
		"--room=none":            `--room "none": must be ample or a number from 1`,
		"--room=0":               `--room "0": must be ample`,
		"--run-time=-1s":         "--run-time -1s: must not be negative",
		"--rounds=0":             "--rounds 0: must be 1 or more",
		"--nodes=0":              "--nodes 0: must be 1 or more",
		"--queue=kueue":          `unknown queue "kueue"; known queues: none, kube-queue and label:KEY=VALUE`,
		"--scenario=everything":  "known scenarios: ample, burst, steady, waiting",
		"--queue=label:a=b":      "needs a program that releases its jobs",
		"--with=queue":           "--with and --apply need a queue of label:KEY=VALUE",
		"--queue=none --apply=f": "--with and --apply need a queue of label:KEY=VALUE",
	} {
		var errs strings.Builder
		if code := run(t.Context(), append([]string{"jobs"}, strings.Fields(args)...), world{out: io.Discard, err: &errs}); code != 2 || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: exit status %d, %q", args, code, errs.String())
		}
	}
}

func TestFlagsOverrideTheScenario(t *testing.T) {
	for _, test := range []struct {
		args string
		want jobs.Options
	}{
		{"--scenario=waiting", jobs.Options{Jobs: 1500, Room: 200}},
		{"--scenario=waiting --jobs=7 --room=ample", jobs.Options{Jobs: 7}},
		{"--scenario=waiting --room=9", jobs.Options{Jobs: 1500, Room: 9}},
		{"--scenario=steady", jobs.Options{Jobs: 1200, Rate: 20}},
		{"--scenario=steady --rate=3", jobs.Options{Jobs: 1200, Rate: 3}},
		{"--room=9", jobs.Options{Jobs: 2000, Room: 9}},
	} {
		f := &jobsFlags{}
		set := pflag.NewFlagSet("jobs", pflag.ContinueOnError)
		f.add(set)
		if err := set.Parse(strings.Fields(test.args)); err != nil {
			t.Fatal(err)
		}
		if _, err := f.check(); err != nil {
			t.Errorf("%s: %v", test.args, err)
		}
		if got := (jobs.Options{Jobs: f.options.Jobs, Rate: f.options.Rate, Room: f.options.Room}); got.Jobs != test.want.Jobs || got.Rate != test.want.Rate || got.Room != test.want.Room {
			t.Errorf("%s: got %+v, want %+v", test.args, got, test.want)
		}
	}
}

func TestNoneIsFirstAndQueuesAreUnique(t *testing.T) {
	f := &jobsFlags{queues: []string{jobs.KubeQueue, "label:a=b", jobs.KubeQueue, jobs.None}, compare: true}
	queues, err := f.turns()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, q := range queues {
		names = append(names, q.Name)
	}
	if want := []string{jobs.None, jobs.KubeQueue, "label:a=b"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}
