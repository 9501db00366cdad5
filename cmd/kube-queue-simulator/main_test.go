package main

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/pkg/simulator/report"
	"kube-queue.dev/kube-queue/test/require"
)

const (
	sample   = "../../test/traces/sample.csv"
	capacity = "--capacity=nvidia.com/gpu=80"
)

// run runs the program and checks the exit status.
func run(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	return runWith(t, "", code, args...)
}

// runWith is run with a standard input.
func runWith(t *testing.T, stdin string, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	if got := execute(t.Context(), args, strings.NewReader(stdin), &out, &errs); got != code {
		t.Errorf("%v: exit status %d, want %d; stdout:\n%sstderr:\n%s", args, got, code, &out, &errs)
	}
	return out.String(), errs.String()
}

func says(t *testing.T, what, text string, words ...string) {
	t.Helper()
	plain := strings.Join(strings.Fields(text), " ")
	require.Says(t, what, plain, words...)
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestACommandLineThatIsWrongIsRefusedWithWhatIsRight(t *testing.T) {
	for _, c := range []struct {
		name  string
		args  []string
		words []string
	}{
		{"no trace", []string{capacity}, []string{"--trace is required"}},
		{"neither tree nor capacity", []string{"--trace", sample}, []string{"--tree or --capacity is required", "--capacity nvidia.com/gpu=600"}},
		{"both", []string{"--trace", sample, capacity, "--tree", "x"}, []string{"mutually exclusive"}},
		{"one standard input for two", []string{"--trace=-", "--tree=-"}, []string{"standard input"}},
		{"an unknown flag", []string{"--no-such"}, []string{"unknown flag: --no-such", "See 'kube-queue-simulator --help' for usage."}},
		{"a misspelled flag", []string{"--capcity=x"}, []string{"unknown flag: --capcity Did you mean --capacity? See"}},
		{"an argument", []string{"jobs.csv"}, []string{`unexpected argument "jobs.csv"`}},
		{"an unknown policy", []string{"--trace", sample, capacity, "--policy", "Block,Fair"}, []string{`--policy: unknown policy "Fair"`, "RoundRobin, Priority, Block"}},
		{"no policy", []string{"--trace", sample, capacity, "--policy", ""}, []string{"--policy"}},
		{"an unknown output", []string{"--trace", sample, capacity, "-o", "yaml"}, []string{`--output: unknown value "yaml"`, "table, csv, json"}},
		{"an unknown kind of tree", []string{"--trace", sample, capacity, "--quotas", "soft"}, []string{`--quotas: unknown value "soft"`, "single, elastic, hard"}},
		{"an unknown format", []string{"--trace", sample, capacity, "--trace-format", "xml"}, []string{`--trace-format: unknown value "xml"`, "csv, swf"}},
		{"an unknown tenant", []string{"--trace", sample, capacity, "--tenant", "team"}, []string{"--tenant", "user, group, queue, partition"}},
		{"an unknown progress", []string{"--trace", sample, capacity, "--progress", "yes"}, []string{"--progress", "auto, always, never"}},
		{"a rate of zero", []string{"--trace", sample, capacity, "--oversell-rate", "0"}, []string{"--oversell-rate"}},
		{"a capacity without amount", []string{"--trace", sample, "--capacity", "nvidia.com/gpu"}, []string{"--capacity", `"nvidia.com/gpu" must be RESOURCE=AMOUNT`}},
		{"a capacity that is no quantity", []string{"--trace", sample, "--capacity", "nvidia.com/gpu=many"}, []string{"--capacity: nvidia.com/gpu", `"many"`}},
		{"a negative capacity", []string{"--trace", sample, "--capacity", "nvidia.com/gpu=-1"}, []string{"--capacity", "negative"}},
		{"a capacity twice", []string{"--trace", sample, "--capacity", "cpu=1,cpu=2"}, []string{"--capacity: cpu is given twice"}},
		{"a capacity nobody requests", []string{"--trace", sample, "--capacity", "nvidia.com/gpu=1,cpu=1"}, []string{"--capacity: no job of the trace requests cpu", "nvidia.com/gpu"}},
		{"a resource nobody requests", []string{"--trace", sample, capacity, "--resource", "cpu"}, []string{"--resource: no job of the trace requests cpu"}},
		{"unknown victims", []string{"--trace", sample, capacity, "--victims", "end"}, []string{`--victims: unknown value "end"`, "restart, resume"}},
		{"a negative minimum run time", []string{"--trace", sample, capacity, "--min-run-time=-1s"}, []string{"--min-run-time must not be negative"}},
		{"a search with two policies", []string{"--trace", sample, capacity, "--policy=Block,Priority", "--search-reserve-after=1h"}, []string{"a search tries one policy"}},
		{"a search for a time that is set", []string{"--trace", sample, capacity, "--reserve-after=1h", "--search-reserve-after=1h"}, []string{"--search-reserve-after and --reserve-after are mutually exclusive"}},
		{"a search for more than each min", []string{"--trace", sample, capacity, "--search-min=50,101"}, []string{"--search-min must be from 0 to 100"}},
		{"a negative time to stop", []string{"--trace", sample, capacity, "--stops-in=-1s"}, []string{"--stops-in must not be negative"}},
		{"victims without evictions", []string{"--trace", sample, capacity, "--reclaim=false", "--victims=resume"}, []string{"--victims has no effect", "--reclaim or --preempt-within-queue"}},
		{"no GPU resource", []string{"--trace", sample, capacity, "--gpu-resource", ""}, []string{"--gpu-resource must not be empty"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			stdout, stderr := run(t, exitUsage, c.args...)
			says(t, "stderr", stderr, c.words...)
			if stdout != "" {
				t.Errorf("stdout:\n%s", stdout)
			}
		})
	}
}

func TestAFileThatIsWrongEndsTheProgramWithItsName(t *testing.T) {
	invalid := file(t, "tree.yaml", `{"apiVersion":"scheduling.sigs.k8s.io/v1beta1","kind":"ElasticQuotaTree","spec":{"root":{"name":"root","min":{"cpu":2},"max":{"cpu":1}}}}`)
	for _, c := range []struct {
		name  string
		args  []string
		words []string
	}{
		{"no such trace", []string{"--trace", "no/such.csv", capacity}, []string{"no/such.csv"}},
		{"a trace with a fault", []string{"--trace", file(t, "jobs.csv", "timestamp,duration,num_gpus,cluster\n0,x,1,a\n"), capacity}, []string{"jobs.csv:2: column duration", `"x"`}},
		{"no such tree", []string{"--trace", sample, "--tree", "no/such.yaml"}, []string{"no/such.yaml"}},
		{"an invalid tree", []string{"--trace", sample, "--tree", invalid}, []string{"invalid quota tree: root: min cpu 2 is above max 1"}},
		{"a misspelt field", []string{"--trace", sample, "--tree", file(t, "tree.yaml", strings.Replace(validTree, "namespaces", "namespace", 1))}, []string{`unknown field "namespace"`, `did you mean "namespaces"`}},
		{"a picture that cannot be written", []string{"--trace", sample, capacity, "--plot", "no/such/dir/x.svg"}, []string{"no/such/dir/x.svg"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, stderr := run(t, exitError, c.args...)
			says(t, "stderr", stderr, c.words...)
		})
	}
}

func TestHelpAndVersionAndCompletion(t *testing.T) {
	help, _ := run(t, exitClean, "--help")
	says(t, "help", help, "Examples:", "--trace", "--print-tree", "ElasticQuotaTree", "timestamp")
	version, _ := run(t, exitClean, "--version")
	says(t, "version", version, name+" ")
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		script, _ := run(t, exitClean, "completion", shell)
		says(t, shell, script, name)
	}
	for flag, want := range map[string]string{"--policy": "Priority", "--output": "json", "--quotas": "hard", "--tenant": "queue", "--trace-format": "swf", "--progress": "always", "--victims": "resume"} {
		values, _ := run(t, exitClean, "__complete", flag, "")
		says(t, flag, values, want)
	}
}

func TestPoliciesAreComparedSideBySide(t *testing.T) {
	stdout, stderr := run(t, exitClean, "--trace", sample, capacity, "--policy", "roundrobin,Block,PRIORITY,Block")
	says(t, "table", stdout, "474 jobs of 5 tenants", "proposed, elastic", "nvidia.com/gpu 80", "RoundRobin Block Priority JOBS MEAN P90 MEAN P90", "By tenant", "vision", "By size", "8-15")
	if stderr != "" {
		t.Errorf("stderr of what is no terminal:\n%s", stderr)
	}
	if strings.Contains(stdout, "Warning") {
		t.Errorf("the program warns of its own proposal:\n%s", stdout)
	}
}

func TestEveryOptionReachesTheRun(t *testing.T) {
	mean := func(args ...string) float64 {
		t.Helper()
		out, _ := run(t, exitClean, append([]string{"--trace", sample, "-o", "json"}, args...)...)
		var got struct {
			Tree     report.Tree
			Policies []struct {
				All struct {
					Jobs            int
					WaitMeanSeconds float64
				}
			}
		}
		require.NoError(t, json.Unmarshal([]byte(out), &got))
		if got.Policies[0].All.Jobs != 474 {
			t.Errorf("%d jobs", got.Policies[0].All.Jobs)
		}
		return got.Policies[0].All.WaitMeanSeconds
	}
	plain := mean(capacity)
	if plain < 1 {
		t.Fatalf("nobody waits: %v", plain)
	}
	if other := mean(capacity, "--policy=Block"); other == plain {
		t.Error("--policy changes nothing")
	}
	if mean(capacity, "--reclaim=false") == mean(capacity, "--reclaim=false", "--pause-borrowing=false") {
		t.Error("--pause-borrowing changes nothing")
	}
	if other := mean(capacity, "--quotas=single"); other == plain {
		t.Error("--quotas changes nothing")
	}
	if other := mean("--capacity=nvidia.com/gpu=40", "--oversell-rate=2", "--quotas=single"); other != mean(capacity, "--quotas=single") {
		t.Error("twice 40 GPUs are not 80")
	}
	if other := mean("--capacity=x/y=80", "--gpu-resource=x/y"); other != plain {
		t.Error("the name of the GPU resource changes waits")
	}
}

func TestTheStandardInputIsATraceOrATree(t *testing.T) {
	jobs, err := os.ReadFile(sample)
	require.NoError(t, err)
	stdout, _ := runWith(t, string(jobs), exitClean, "--trace=-", capacity)
	says(t, "table", stdout, "474 jobs")
	manifest, _ := run(t, exitClean, "--trace", sample, capacity, "--print-tree")
	odd := strings.Replace(manifest, "    max:\n", "    max:\n      memroy: 1Gi\n", 1)
	stdout, _ = runWith(t, odd, exitClean, "--trace", sample, "--tree=-")
	says(t, "table", stdout, "474 jobs", `Warning root: max: no known resource is called "memroy"`)
	if strings.Contains(stdout, "unlimited") {
		t.Errorf("the tree limits the GPUs:\n%s", stdout)
	}
	stdout, _ = runWith(t, strings.ReplaceAll(manifest, "nvidia.com/gpu", "cpu"), exitClean, "--trace", sample, "--tree=-")
	says(t, "table", stdout, "Warning no max of the tree lists nvidia.com/gpu, so it is unlimited")
}

func TestALogOfTheStandardWorkloadFormatIsPlayed(t *testing.T) {
	log := file(t, "log.swf", "; a log\n1 0 -1 100 4 -1 -1 4 -1 -1 1 7 3 -1 2 1 -1 -1\n2 5 -1 100 8 -1 -1 8 -1 -1 1 8 3 -1 2 1 -1 -1\n3 5 -1 -1 8 -1 -1 8 -1 -1 1 8 3 -1 2 1 -1 -1\n")
	stdout, _ := run(t, exitClean, "--trace", log, "--capacity=cpu=8", "--tenant=group")
	says(t, "table", stdout, "2 jobs of 1 tenant,", "1 skipped: unknown run time (first at line 4)", "group-3", "cpu 8")
}

func TestAPictureIsDrawn(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "waits.svg")
	run(t, exitClean, "--trace", sample, capacity, "--policy=RoundRobin,Block", "--plot", picture)
	f, err := os.Open(picture)
	require.NoError(t, err)
	defer f.Close()
	panels := 0
	for d := xml.NewDecoder(f); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "g" {
			panels++
		}
	}
	if panels != 4 {
		t.Errorf("%d panels, want 4", panels)
	}
}

func TestProgressIsReportedWhereItIsRequested(t *testing.T) {
	_, stderr := run(t, exitClean, "--trace", sample, capacity, "--progress=always", "--policy=Block,Priority")
	says(t, "stderr", stderr, "reading", "Block (1 of 2)", "Priority (2 of 2): 474 of 474 jobs finished, 100 %")
	if !strings.HasSuffix(stderr, "\r\x1b[K") {
		t.Errorf("the last line is left: %q", stderr)
	}
	if _, stderr := run(t, exitClean, "--trace", sample, capacity, "--progress=never"); stderr != "" {
		t.Errorf("stderr: %q", stderr)
	}
}

// interruptedAfter ends a context once the text is written.
type interruptedAfter struct {
	strings.Builder
	text   string
	cancel context.CancelFunc
}

func (w *interruptedAfter) Write(p []byte) (int, error) {
	n, err := w.Builder.Write(p)
	if strings.Contains(w.String(), w.text) {
		w.cancel()
	}
	return n, err
}

func TestAnInterruptedRunShowsWhatWasDone(t *testing.T) {
	var rows strings.Builder
	rows.WriteString("timestamp,duration,num_gpus,namespace\n")
	for i := range 4000 {
		fmt.Fprintf(&rows, "%d,1,1,a\n", i)
	}
	trace := file(t, "jobs.csv", rows.String())
	ctx, cancel := context.WithCancel(t.Context())
	var stdout strings.Builder
	stderr := &interruptedAfter{text: "Priority (2 of 3)", cancel: cancel}
	code := execute(ctx, []string{"--trace", trace, "--capacity=nvidia.com/gpu=1", "--policy=Block,Priority,RoundRobin", "--progress=always"}, strings.NewReader(""), &stdout, stderr)
	if code != exitInterrupted {
		t.Errorf("exit status %d", code)
	}
	says(t, "stderr", stderr.String(), "interrupted in Priority (2 of 3)", "no results of this policy are printed")
	says(t, "stdout", stdout.String(), "Block 4,000")
	if strings.Contains(stdout.String(), "Priority") || strings.Contains(stderr.String(), "RoundRobin (3 of 3)") {
		t.Errorf("it went on: stdout\n%s\nstderr\n%s", &stdout, stderr.String())
	}
}

func TestNothingFinishedIsNothingPrinted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr strings.Builder
	if code := execute(ctx, []string{"--trace", sample, capacity}, strings.NewReader(""), &stdout, &stderr); code != exitInterrupted || stdout.Len() > 0 {
		t.Errorf("exit status %d, stdout\n%s", code, &stdout)
	}
	says(t, "stderr", stderr.String(), "interrupted")
}

func TestASearchTriesTheBestTimeOnTheSecondHalf(t *testing.T) {
	out, _ := run(t, 0, "--trace", sample, capacity, "--policy=ShortestFirst", "--search-reserve-after=0,1m,1000h")
	says(t, "the table", out, "JOBS RESERVE-AFTER MIN MEAN-WAIT P90-WAIT LONGEST-WAIT", "first half never 100 %", "first half 1m0s 100 %", "best", "second half")
}

func TestASearchTriesLowerMins(t *testing.T) {
	args := []string{"--trace", sample, capacity, "--reserve-after=10h", "--search-min=0"}
	out, _ := run(t, exitClean, args...)
	says(t, "the table", out, "first half 10h0m0s 0 %", "best", "second half 10h0m0s 0 %")
	manifest, _ := run(t, exitClean, append(args, "--print-tree")...)
	says(t, "the tree", manifest, `min: nvidia.com/gpu: "0"`)
	if out, _ = run(t, exitClean, "--trace", sample, capacity, "--search-min=0,100"); strings.Count(out, "first half") != 2 {
		t.Errorf("not each percentage is tried:\n%s", out)
	}
}
