package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/test/require"
)

// A good log has no violation. Each mutation adds one violation, which the responsible check must
// report. This proves that each check can fail.

// goodStory has a job that is released immediately, one that waits for it, and a batch Job.
func goodStory(s *script) {
	s.tell(`tree; first:3 held; second:3 held; third:1b held; first enqueue; second enqueue; third enqueue;
		first dequeue, release, start, runs, event; third dequeue, release, start, runs, event; wait 2s;
		second shows QuotaExceeded, event; first.unit status extensions phase=Running; wait 2s;
		first end; second dequeue, release, start, runs; third end; wait 3s; second end; wait 20s`)
	s.create(admin, "configmap", "marker", "{}")
}

// recording is a good log as lines that can be changed.
type recording struct {
	t     *testing.T
	lines []map[string]any
}

func parseRecording(t *testing.T, raw []byte) *recording {
	r := &recording{t: t}
	for line := range bytes.Lines(raw) {
		var e map[string]any
		require.NoError(t, json.Unmarshal(line, &e))
		r.lines = append(r.lines, e)
	}
	return r
}

// broken counts the violations of the log by rule.
func (r *recording) broken() map[string]int {
	r.t.Helper()
	log, err := Read(bytes.NewReader(encode(r.t, r.lines)))
	require.NoError(r.t, err)
	report, err := log.Check(Options{})
	require.NoError(r.t, err)
	rules := map[string]int{}
	for _, v := range report.Violations() {
		rules[v.Rule]++
	}
	return rules
}

// at returns the value at a path as text.
func textAt(e map[string]any, path string) string {
	v, _, _ := unstructured.NestedFieldNoCopy(e, strings.Split(path, ".")...)
	switch v.(type) {
	case string, bool, float64:
		return fmt.Sprint(v)
	}
	return ""
}

func put(e map[string]any, path string, value any) {
	_ = unstructured.SetNestedField(e, value, strings.Split(path, ".")...)
}

// find returns the successful writes that a function selects. At least one must exist.
func (r *recording) find(what string, pick func(e map[string]any) bool) []int {
	r.t.Helper()
	var found []int
	for i, e := range r.lines {
		if pick(e) && textAt(e, "stage") == "ResponseComplete" && textAt(e, "responseStatus.code")[:1] == "2" {
			found = append(found, i)
		}
	}
	if len(found) == 0 {
		r.t.Fatalf("the recording has no %s", what)
	}
	return found
}

// where returns the writes that have values at paths, like "verb create".
func (r *recording) where(fields ...string) []int {
	r.t.Helper()
	return r.find(strings.Join(fields, ", "), func(e map[string]any) bool { return has(e, fields) })
}

func has(e map[string]any, fields []string) bool {
	return !slices.ContainsFunc(fields, func(field string) bool {
		path, want, _ := strings.Cut(field, " ")
		return textAt(e, path) != want
	})
}

// phases returns the first line in which each unit is in a phase.
func (r *recording) phases(phase string) []int {
	r.t.Helper()
	seen := map[string]bool{}
	return slices.DeleteFunc(r.where("objectRef.resource queueunits", "responseObject.status.phase "+phase), func(i int) bool {
		unit := textAt(r.lines[i], "responseObject.metadata.uid")
		again := seen[unit]
		seen[unit] = true
		return again
	})
}

// release returns the line of the first release.
func (r *recording) release() int {
	r.t.Helper()
	return r.find("release", func(e map[string]any) bool {
		return has(e, []string{"user.username " + extensions, "objectRef.subresource "}) &&
			(textAt(e, "responseObject.spec.runPolicy.suspend") == "false" || textAt(e, "responseObject.spec.suspend") == "false")
	})[0]
}

// ofFirst returns the first of some lines that is about the job that is released first.
func (r *recording) ofFirst(lines []int) int {
	r.t.Helper()
	job := textAt(r.lines[r.release()], "responseObject.metadata.uid")
	i := slices.IndexFunc(lines, func(i int) bool { return strings.Contains(r.text(i), job) })
	if i < 0 {
		r.t.Fatalf("none of %d lines is about job %s", len(lines), job)
	}
	return lines[i]
}

func (r *recording) text(line int) string { return string(encode(r.t, r.lines[line:line+1])) }

// pods returns the creates of pods.
func (r *recording) pods() []int { return r.where("verb create", "responseObject.kind Pod") }

// ends returns the lines in which jobs have succeeded.
func (r *recording) ends() []int {
	return slices.DeleteFunc(r.where("objectRef.subresource status"), func(i int) bool {
		text := r.text(i)
		return !strings.Contains(text, `"status":"True","type":"Succeeded"`) && !strings.Contains(text, `"status":"True","type":"Complete"`)
	})
}

// swap exchanges the places of two lines: their times and revisions.
func (r *recording) swap(i, j int) {
	for _, path := range []string{"requestReceivedTimestamp", "stageTimestamp", "responseObject.metadata.resourceVersion"} {
		x, y := textAt(r.lines[i], path), textAt(r.lines[j], path)
		put(r.lines[i], path, y)
		put(r.lines[j], path, x)
	}
}

func (r *recording) drop(lines []int) {
	for _, i := range slices.Backward(lines) {
		r.lines = slices.Delete(r.lines, i, i+1)
	}
}

// set sets a field of lines.
func (r *recording) set(lines []int, path string, value any) {
	for _, i := range lines {
		put(r.lines[i], path, value)
	}
}

var mutations = []struct {
	name, rule string
	mutate     func(*recording)
}{
	{"a pod comes before its job's release", "early-pod", func(r *recording) { r.swap(r.release(), r.ofFirst(r.pods())) }},
	{"a job is created without being suspended", "hold-missed", func(r *recording) {
		r.set(r.where("verb create", "responseObject.spec.runPolicy.suspend true"), "responseObject.spec.runPolicy.suspend", false)
	}},
	{"a unit requests more than there is", "over-limit", func(r *recording) {
		r.set(r.where("responseObject.kind QueueUnit"), "responseObject.spec.resource.cpu", "400")
	}},
	{"a unit's request is no quantity", "unreadable", func(r *recording) {
		r.set(r.where("responseObject.kind QueueUnit"), "responseObject.spec.resource.cpu", "many")
	}},
	{"the pods request more than was admitted", "over-limit", func(r *recording) {
		r.set(r.pods(), "responseObject.spec.overhead", map[string]any{"cpu": "9"})
	}},
	{"a job ends while its pods run", "over-limit", func(r *recording) {
		r.drop(r.where("objectRef.resource pods", "responseObject.status.phase Succeeded"))
	}},
	{"the ends of all units are lost", "held-after-end", func(r *recording) { r.drop(r.phases("Succeeded")) }},
	{"a unit ends before its job", "ended-too-early", func(r *recording) { r.swap(r.ofFirst(r.phases("Succeeded")), r.ofFirst(r.ends())) }},
	{"a release comes before the dequeue", "release-without-dequeue", func(r *recording) { r.swap(r.release(), r.ofFirst(r.phases("Dequeued"))) }},
	{"a unit runs that was not dequeued", "wrong-move", func(r *recording) { r.set(r.phases("Dequeued")[:1], "responseObject.status.phase", "Running") }},
	{"a running job's unit is queued", "early-return", func(r *recording) { r.set(r.phases("Running")[:1], "responseObject.status.phase", "Backoff") }},
	{"a person dequeues a unit", "wrong-writer", func(r *recording) { r.set(r.phases("Dequeued")[:1], "user.username", admin) }},
	{"a unit is admitted by another group", "wrong-quota", func(r *recording) {
		r.set(r.phases("Dequeued")[:1], "responseObject.status.quota", "root/elsewhere")
	}},
	{"job-extensions writes the status of jobs, too", "job-budget", func(r *recording) {
		r.set(r.where("objectRef.resource tfjobs", "objectRef.subresource status"), "user.username", extensions)
	}},
}

func TestEveryMutationOfAGoodLogIsReported(t *testing.T) {
	s := newScript(t)
	goodStory(s)
	for name, raw := range map[string][]byte{"script": s.bytes(), "good.jsonl.gz": unzip(t, "testdata/good.jsonl.gz")} {
		t.Run(name, func(t *testing.T) {
			// The recording is older than charges by pods: see TestARecordingFromBeforePodsWereCharged.
			good := parseRecording(t, raw).broken()
			if name == "script" && len(good) > 0 {
				t.Fatalf("the good log breaks %v", good)
			}
			for _, m := range mutations {
				t.Run(m.name, func(t *testing.T) {
					r := parseRecording(t, raw)
					m.mutate(r)
					if bad := r.broken(); bad[m.rule] <= good[m.rule] {
						t.Errorf("reported %v, and not %s", bad, m.rule)
					}
				})
			}
		})
	}
}

// The recordings are from a real API server, the training operator and both programs, without
// unused fields. "good" has 16 jobs of three kinds in two groups. "troubled" has one job suspended
// by hand and one released by hand, a delete in the foreground and one that orphans, a namespace
// moved between groups and then deleted, and a quota cut under its use.
func TestRecordingsHaveNoViolations(t *testing.T) {
	log, err := ReadFile("testdata/troubled.jsonl.gz")
	require.NoError(t, err)
	report, err := log.Check(Options{})
	require.NoError(t, err)
	if err := report.Err(); err != nil {
		t.Error(err)
	}
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
