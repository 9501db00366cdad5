package audit

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/require"
)

// goodStory has a job that is released immediately, one that waits, and a batch Job.
const goodStory = `tree; first:3 held; second:3 held; third:1b held; first enqueue; second enqueue; third enqueue;
	first dequeue, release, start, runs, event; third dequeue, release, start, runs, event; wait 2s;
	second shows QuotaExceeded, event; first.unit status extensions phase=Running; wait 2s;
	first end; second dequeue, release, start, runs; third end; wait 3s; second end; wait 20s; marker make configmap admin {}`

// A good log has no violations. Each mutation replaces a part of it and adds a violation that the responsible check
// must report. This proves that each check can fail.
func TestEveryMutationOfAGoodLogIsReported(t *testing.T) {
	tellAll(t, Options{}, []story{{"a good log", goodStory, ""}})
	const running = "phase=Dequeued quota=root/team attempts=1; first release, start, runs"
	for _, m := range []struct{ name, rule, was, now string }{
		{"a pod comes before its job's release", "early-pod", "first dequeue, release, start", "first dequeue, start, release"},
		{"a job is created without being suspended", "hold-missed", "first:3 held", "first make tfjob admin {metadata: {annotations: {scheduling.x-k8s.io/suspend: 'true'}}, spec: {}}"},
		{"a unit requests more than there is", "over-limit", "first enqueue", "first enqueue; first.unit patch extensions spec.resource={cpu: '400'} spec.podSets=-"},
		{"a unit's request is no quantity", "unreadable", "first enqueue", "first enqueue; first.unit patch extensions spec.resource={cpu: many}"},
		{"the pods request more than was admitted", "over-limit", "third dequeue, release, start", "third dequeue, release, start 9"},
		{"a job ends while its pods run", "over-limit", "first end", "first forget, end"},
		{"the end of a unit is lost", "held-after-end", "first end", "first finish"},
		{"a unit ends before its job", "ended-too-early", "first end", "first endunit, finish"},
		{"a release comes before the dequeue", "release-without-dequeue", "first dequeue, release", "first release, dequeue"},
		{"a unit runs that was not dequeued", "wrong-move", "first dequeue, release", "first.unit status extensions phase=Running; first release"},
		{"a running job's unit is queued", "early-return", "status extensions phase=Running", "status controller phase=Backoff"},
		{"a person dequeues a unit", "wrong-writer", "first dequeue, release, start, runs", "first.unit status admin " + running},
		{"a unit is admitted by another group", "wrong-quota", "first dequeue, release", "first.unit status controller phase=Dequeued quota=root/elsewhere attempts=1; first release"},
		{"job-extensions writes the status of jobs, too", "job-budget", "second end", "second " + strings.Repeat("patch extensions status.startTime=now+0s, ", 9) + "end"},
	} {
		t.Run(m.name, func(t *testing.T) {
			if strings.Count(goodStory, m.was) != 1 {
				t.Fatalf("the good log does not have %q once", m.was)
			}
			s := newScript(t)
			s.tell(strings.Replace(goodStory, m.was, m.now, 1))
			if bad := rulesOf(t, s.log(), Options{}); !slices.Contains(bad, m.rule) {
				t.Errorf("reported %v, and not %s", bad, m.rule)
			}
		})
	}
}

// The recordings are from a real API server, the training operator and both programs, without unused fields. "good"
// has 16 jobs of three kinds in two groups. "troubled" has a job suspended by hand and one released by hand, a
// foreground delete and an orphaning one, a namespace moved between groups and then deleted, and a quota cut below
// its use.
func TestRecordingsHaveNoViolations(t *testing.T) {
	log, err := ReadFile("testdata/troubled.jsonl.gz")
	require.NoError(t, err)
	report, err := log.Check(Options{})
	require.NoError(t, err)
	require.NoError(t, report.Err())
	for _, c := range report.Checks {
		if c.Checked == 0 && c.Name != "two-leaders" { // the programs ran without leader election
			t.Errorf("%s checked nothing", c.Name)
		}
	}
}

// A controller that charged only what was admitted gave quota to the next jobs while pods of ended
// TFJobs and PyTorchJobs still ran.
func TestARecordingFromBeforePodsWereCharged(t *testing.T) {
	log, err := ReadFile("testdata/good.jsonl.gz")
	require.NoError(t, err)
	report, err := log.Check(Options{})
	require.NoError(t, err)
	var got []string
	for _, v := range report.Violations() {
		got = append(got, v.Rule+" "+v.Object)
	}
	want := []string{"over-limit Job team-a/j2", "over-limit Job team-b/j3", "over-limit PyTorchJob team-a/p2"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

var rulePattern = regexp.MustCompile(`\.fail\("([a-z-]+)"`)

// rulesInSource returns the rules of all checks.
func rulesInSource(t *testing.T) map[string]bool {
	sources, err := filepath.Glob("law_*.go")
	require.NoError(t, err)
	rules := map[string]bool{}
	for _, path := range sources {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, match := range rulePattern.FindAllSubmatch(text, -1) {
			rules[string(match[1])] = true
		}
	}
	if len(rules) < 10 {
		t.Fatalf("only %d rules found", len(rules))
	}
	return rules
}

func TestEachRuleHasAMutationOrAStory(t *testing.T) {
	sources, _ := filepath.Glob("*_test.go")
	var tests []byte
	for _, path := range sources {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		tests = append(tests, text...)
	}
	for rule := range rulesInSource(t) {
		if !regexp.MustCompile(`[" ]` + rule + `[" ]`).Match(tests) {
			t.Errorf("no test has rule %s fire", rule)
		}
	}
}
