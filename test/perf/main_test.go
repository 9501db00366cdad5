package main

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"kube-queue.dev/kube-queue/test/perf/jobs"
)

func TestErrorsOfTheCommandLineSayWhatIsWrong(t *testing.T) {
	for args, want := range map[string]string{
		"frobnicate":                      `unknown command "frobnicate"; known commands: units, jobs, pods, names, reviews, ceiling`,
		"units --bogus":                   "unknown flag: --bogus",
		"units extra":                     `unexpected argument "extra"`,
		"units --scenario=none":           `unknown scenario "none"; known scenarios: baseline,`,
		"units --policy=Random":           "known policies: RoundRobin, Block, Priority",
		"units --scenario=./no-such.yaml": "no-such.yaml",
		"units --stretch=0":               "--stretch: must be between 0.01 and 100, not 0",
		"ceiling --units=0":               "--units and --in-flight must be 1 or more",
		"ceiling --units=many":            "--units",
		"jobs --jobs=0":                   "--jobs, --rounds and --nodes must be 1 or more",
		"jobs --rate=-1":                  "--rate and --run-time must not be negative",
		"jobs --room=none":                `--room "none": must be ample or a number from 1`,
		"jobs --queue=kueue":              `unknown queue "kueue"; known queues: none, kube-queue and label:KEY=VALUE`,
		"jobs --scenario=everything":      "known scenarios: ample, burst, steady, waiting",
		"jobs --queue=label:a=b":          "needs a program that releases its jobs",
		"jobs --queue=none --apply=f":     "--with and --apply need a queue of label:KEY=VALUE",
		"pods --pods=150":                 "--pods 150: must be a multiple of 100",
		"pods --idle=1ms":                 "--idle 1s or more",
		"names --names=64":                "--names from 1 to 63",
		"reviews --nodes=2":               "--nodes must be 3 or more",
		"reviews --for=1ms":               "--for 1s or more",
	} {
		var errs strings.Builder
		if code := run(t.Context(), strings.Fields(args), world{out: io.Discard, err: &errs}); code != 2 || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: status %d, %q, want %q", args, code, errs.String(), want)
		}
	}
}

func TestHelpListsTheFlags(t *testing.T) {
	for _, c := range commands() {
		var out strings.Builder
		code := run(t.Context(), []string{c.name, "--help"}, world{out: &out, err: &out})
		if code != 0 || !strings.Contains(out.String(), c.summary) || !strings.Contains(out.String(), "--json FILE") {
			t.Errorf("%s: status %d\n%s", c.name, code, out.String())
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
		j, flags := &jobsRun{}, pflag.NewFlagSet("jobs", pflag.ContinueOnError)
		j.addFlags(flags)
		if err := flags.Parse(strings.Fields(test.args)); err != nil {
			t.Fatal(err)
		}
		if _, err := j.check(); err != nil {
			t.Errorf("%s: %v", test.args, err)
		}
		if got := j.options; got.Jobs != test.want.Jobs || got.Rate != test.want.Rate || got.Room != test.want.Room {
			t.Errorf("%s: got %+v, want %+v", test.args, got, test.want)
		}
	}
}

func TestNoneIsFirstAndQueuesAreUnique(t *testing.T) {
	queues, err := parseQueues([]string{jobs.KubeQueue, "label:a=b", jobs.KubeQueue, jobs.None}, true)
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

func TestALongNameIsAsLongAsItMayBe(t *testing.T) {
	if name := longName("9-9999-9"); len(name) != 317 || !strings.HasSuffix(name, "9-9999-9") {
		t.Errorf("%q has %d characters", name, len(name))
	}
}
