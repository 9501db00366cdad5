package main

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"kube-queue.dev/kube-queue/test/perf/jobs"
)

// run runs a command line that starts no cluster.
func run(t *testing.T, args string) (out string, err error) {
	t.Helper()
	var text strings.Builder
	root := command()
	root.SetArgs(strings.Fields(args))
	root.SetOut(&text)
	root.SetErr(io.Discard)
	err = root.ExecuteContext(t.Context())
	return text.String(), err
}

func TestErrorsOfTheCommandLineSayWhatIsWrong(t *testing.T) {
	for args, want := range map[string]string{
		"frobnicate":                      `unknown command "frobnicate"`,
		"units --bogus":                   "unknown flag: --bogus",
		"units extra":                     `unknown command "extra"`,
		"units --scenario=none":           `unknown scenario "none"; known scenarios: baseline,`,
		"units --policy=Random":           "known policies: RoundRobin, Block, Priority",
		"units --scenario=./no-such.yaml": "no-such.yaml",
		"units --stretch=0":               "--stretch: must be between 0.01 and 100, not 0",
		"jobs --jobs=0":                   "--jobs and --run-time must be positive",
		"jobs --queue=kueue":              `unknown queue "kueue"; known queues: none, kube-queue and label:KEY=VALUE`,
		"jobs --scenario=everything":      "known scenarios: ample, burst, steady, waiting",
		"jobs --queue=label:a=b":          "needs a program that releases its jobs",
		"jobs --queue=none --apply=f":     "--with and --apply need a queue of label:KEY=VALUE",
		"pods --pods=150":                 "--pods 150: must be a multiple of 100",
	} {
		if _, err := run(t, args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

func TestFlagsOverrideTheScenario(t *testing.T) {
	for _, test := range []struct {
		args  string
		want  jobs.Options
		parts int
	}{
		{"", jobs.Options{Jobs: 1500}, 1},
		{"--scenario=waiting --compare", jobs.Options{Jobs: 1500, Room: 200}, 2},
		{"--scenario=waiting --jobs=7 --room=0 --queue=none --compare", jobs.Options{Jobs: 7}, 1},
		{"--scenario=steady", jobs.Options{Jobs: 1200, Rate: 20}, 1},
		{"--scenario=steady --rate=3 --queue=none --queue=kube-queue --queue=none", jobs.Options{Jobs: 1200, Rate: 3}, 2},
	} {
		j, flags := &jobsRun{}, pflag.NewFlagSet("jobs", pflag.ContinueOnError)
		j.addFlags(flags)
		if err := flags.Parse(strings.Fields(test.args)); err != nil {
			t.Fatal(err)
		}
		parts, err := j.parts()
		if got := j.options; err != nil || len(parts) != test.parts || got.Jobs != test.want.Jobs || got.Rate != test.want.Rate || got.Room != test.want.Room {
			t.Errorf("%s: got %+v, %d parts, %v", test.args, got, len(parts), err)
		}
	}
}
