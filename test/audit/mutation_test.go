package audit

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A good log has no violation. Each mutation adds one violation, which the responsible check must
// report. This proves that each check can fail.

// goodStory has a job that is released immediately, one that waits for it, and a batch Job.
func goodStory(s *script) {
	s.tell(`tree; first:3 held; second:3 held; third:1b held; first enqueue; second enqueue; third enqueue;
		first dequeue, release, start, runs, event; third dequeue, release, start, runs, event; wait 2s;
		second shows QuotaExceeded, event; first.unit status extensions phase=Running; wait 2s;
		first end; second dequeue, release, start, runs; third end; wait 3s; second end; wait 20s`)
	s.create(admin, "/v1/configmaps", `{apiVersion: v1, kind: ConfigMap, metadata: {name: marker}}`)
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
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		r.lines = append(r.lines, e)
	}
	return r
}

func (r *recording) log() *Log {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	for _, e := range r.lines {
		if err := encoder.Encode(e); err != nil {
			r.t.Fatal(err)
		}
	}
	log, err := Read(&out)
	if err != nil {
		r.t.Fatal(err)
	}
	return log
}

func at(e map[string]any, path ...string) string {
	v, _, _ := unstructured.NestedFieldNoCopy(e, path...)
	switch v := v.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// find returns the lines that a function selects. At least one must exist.
func (r *recording) find(what string, pick func(e map[string]any) bool) []int {
	var found []int
	for i, e := range r.lines {
		if pick(e) && at(e, "stage") == "ResponseComplete" && at(e, "responseStatus", "code")[:1] == "2" {
			found = append(found, i)
		}
	}
	if len(found) == 0 {
		r.t.Fatalf("the recording has no %s", what)
	}
	return found
}

func (r *recording) phases(phase string) []int {
	last := map[string]string{}
	return r.find("unit that becomes "+phase, func(e map[string]any) bool {
		if at(e, "objectRef", "resource") != "queueunits" {
			return false
		}
		uid := at(e, "responseObject", "metadata", "uid")
		was, now := last[uid], at(e, "responseObject", "status", "phase")
		last[uid] = now
		return now == phase && was != phase
	})
}

func suspendedIn(e map[string]any) string {
	if v := at(e, "responseObject", "spec", "runPolicy", "suspend"); v != "" {
		return v
	}
	return at(e, "responseObject", "spec", "suspend")
}

func (r *recording) releases() []int {
	return r.find("release", func(e map[string]any) bool {
		resource := at(e, "objectRef", "resource")
		return at(e, "user", "username") == extensions && (resource == "tfjobs" || resource == "jobs" || resource == "pytorchjobs") &&
			at(e, "objectRef", "subresource") == "" && suspendedIn(e) == "false"
	})
}

func (r *recording) podOf(release int) int {
	uid := at(r.lines[release], "responseObject", "metadata", "uid")
	return r.find("pod of a job", func(e map[string]any) bool {
		if at(e, "objectRef", "resource") != "pods" || at(e, "verb") != "create" || at(e, "objectRef", "subresource") != "" {
			return false
		}
		owners, _, _ := unstructured.NestedSlice(e, "responseObject", "metadata", "ownerReferences")
		return slices.ContainsFunc(owners, func(o any) bool { return o.(map[string]any)["uid"] == uid })
	})[0]
}

func (r *recording) podsCreated() []int {
	return r.find("pod", func(e map[string]any) bool {
		return at(e, "objectRef", "resource") == "pods" && at(e, "verb") == "create" && at(e, "responseObject", "kind") == "Pod"
	})
}

// ends returns the lines with the end of a pod.
func (r *recording) ends() []int {
	return r.find("pod that has ended", func(e map[string]any) bool {
		return at(e, "objectRef", "resource") == "pods" && at(e, "responseObject", "status", "phase") == "Succeeded"
	})
}

// unitOf returns the line of the unit's phase that belongs to a job's line.
func (r *recording) unitOf(job int, phase string) int {
	uid := at(r.lines[job], "responseObject", "metadata", "uid")
	for _, i := range r.phases(phase) {
		if at(r.lines[i], "responseObject", "spec", "consumerRef", "uid") == uid {
			return i
		}
	}
	r.t.Fatalf("the recording has no unit that becomes %s for job %s", phase, uid)
	return 0
}

// swap exchanges the places of two lines: their times and revisions.
func (r *recording) swap(i, j int) {
	a, b := r.lines[i], r.lines[j]
	for _, path := range [][]string{{"requestReceivedTimestamp"}, {"stageTimestamp"}, {"responseObject", "metadata", "resourceVersion"}} {
		x, y := at(a, path...), at(b, path...)
		_ = unstructured.SetNestedField(a, y, path...)
		_ = unstructured.SetNestedField(b, x, path...)
	}
}

func (r *recording) drop(lines ...int) {
	slices.Sort(lines)
	for _, i := range slices.Backward(lines) {
		r.lines = slices.Delete(r.lines, i, i+1)
	}
}

// move puts a line shortly after another one.
func (r *recording) move(line int, after map[string]any, shift int64) {
	e := r.lines[line]
	revision, _ := strconv.ParseInt(at(after, "responseObject", "metadata", "resourceVersion"), 10, 64)
	_ = unstructured.SetNestedField(e, strconv.FormatInt(revision+shift, 10), "responseObject", "metadata", "resourceVersion")
	for _, stamp := range []string{"requestReceivedTimestamp", "stageTimestamp"} {
		e[stamp] = after[stamp]
	}
}

// again repeats a line right after another one, with changed fields.
func (r *recording) again(line, after int, shift int64, fields map[string]any) {
	raw, _ := json.Marshal(r.lines[line])
	var e map[string]any
	_ = json.Unmarshal(raw, &e)
	for path, value := range fields {
		_ = unstructured.SetNestedField(e, value, strings.Split(path, ".")...)
	}
	r.lines = slices.Insert(r.lines, after+1, e)
	r.move(after+1, r.lines[after], shift)
}

// set sets a field of lines.
func (r *recording) set(lines []int, value any, path ...string) {
	for _, i := range lines {
		if err := unstructured.SetNestedField(r.lines[i], value, path...); err != nil {
			r.t.Fatal(err)
		}
	}
}

// units returns the lines that have units.
func (r *recording) units() []int {
	return r.find("unit", func(e map[string]any) bool { return at(e, "responseObject", "kind") == "QueueUnit" })
}

// spread leaves gaps between the revisions, so that lines can be inserted.
func (r *recording) spread() {
	for _, e := range r.lines {
		if n, err := strconv.ParseInt(at(e, "responseObject", "metadata", "resourceVersion"), 10, 64); err == nil {
			_ = unstructured.SetNestedField(e, strconv.FormatInt(n*10, 10), "responseObject", "metadata", "resourceVersion")
		}
	}
}

var mutations = []struct {
	name, rule string
	mutate     func(*recording)
}{
	{"a pod comes before its job's release", "early-pod", func(r *recording) {
		release := r.releases()[0]
		r.swap(release, r.podOf(release))
	}},
	{"a job is created without being suspended", "hold-missed", func(r *recording) {
		r.set(r.find("job with the annotation", func(e map[string]any) bool {
			return at(e, "verb") == "create" && at(e, "responseObject", "metadata", "annotations", suspendKey) == "true"
		}), false, "responseObject", "spec", "runPolicy", "suspend")
	}},
	{"a unit requests more than there is", "over-limit", func(r *recording) {
		r.set(r.units(), "400", "responseObject", "spec", "resource", "cpu")
	}},
	{"a unit's total is not its pod sets'", "sum-mismatch", func(r *recording) {
		r.set(r.units(), "1m", "responseObject", "spec", "resource", "cpu")
	}},
	{"the pods request more than their unit", "pods-mismatch", func(r *recording) {
		r.set(r.podsCreated(), map[string]any{"cpu": "9"}, "responseObject", "spec", "overhead")
	}},
	{"the pods request more than was admitted", "over-limit-by-pods", func(r *recording) {
		r.set(r.podsCreated(), map[string]any{"cpu": "9"}, "responseObject", "spec", "overhead")
	}},
	{"a job ends while its pods run", "over-limit-by-pods", func(r *recording) {
		r.drop(r.ends()...)
	}},
	{"pods that request more than was admitted stay for a minute", "growth-not-shown", func(r *recording) {
		r.set(r.podsCreated(), map[string]any{"cpu": "9"}, "responseObject", "spec", "overhead")
		r.lines = r.lines[:r.ends()[0]]
		last := len(r.lines) - 1
		r.again(last, last, 1, nil)
		for _, stamp := range []string{"requestReceivedTimestamp", "stageTimestamp"} {
			when, err := time.Parse(time.RFC3339, at(r.lines[last], stamp))
			if err != nil {
				r.t.Fatal(err)
			}
			r.lines[last+1][stamp] = when.Add(time.Minute).Format("2006-01-02T15:04:05.000000Z")
		}
	}},
	{"units are dequeued before those they waited for have ended", "over-limit", func(r *recording) {
		created := r.find("unit", func(e map[string]any) bool {
			return at(e, "objectRef", "resource") == "queueunits" && at(e, "verb") == "create"
		})
		last := r.lines[created[len(created)-1]]
		for n, i := range r.phases("Dequeued") {
			if r.waited(i) {
				r.move(i, last, int64(n%9+1))
			}
		}
	}},
	{"the ends of all units are lost", "held-after-end", func(r *recording) { r.drop(r.phases("Succeeded")...) }},
	{"a unit ends before its job", "ended-too-early", func(r *recording) {
		release := r.releases()[0]
		r.swap(r.unitOf(release, "Succeeded"), r.endOf(release))
	}},
	{"a release is done twice", "double-release", func(r *recording) {
		release := r.releases()[0]
		r.again(release, release, 1, map[string]any{"responseObject.spec.runPolicy.suspend": true, "responseObject.spec.suspend": true, "user.username": admin})
		r.again(release, release+1, 1, nil)
	}},
	{"a release comes before the dequeue", "release-without-dequeue", func(r *recording) {
		release := r.releases()[0]
		r.swap(release, r.unitOf(release, "Dequeued"))
	}},
	{"a unit is dequeued twice", "double-dequeue", func(r *recording) {
		i := r.phases("Dequeued")[0]
		r.again(i, i, 1, map[string]any{"responseObject.status.attempts": float64(2)})
	}},
	{"a unit goes requeued without an eviction", "wrong-move", func(r *recording) {
		i := r.phases("Dequeued")[0]
		r.again(i, i, 1, map[string]any{"responseObject.status.phase": "Backoff"})
	}},
	{"and gives its quota back while its job is released", "early-return", func(r *recording) {
		release := r.releases()[0]
		i := r.unitOf(release, "Dequeued")
		r.again(i, r.podOf(release), 1, map[string]any{"responseObject.status.phase": "Backoff"})
	}},
	{"a person dequeues a unit", "wrong-writer", func(r *recording) {
		r.set(r.phases("Dequeued")[:1], admin, "user", "username")
	}},
	{"a unit is admitted by another group", "wrong-quota", func(r *recording) {
		r.set(r.phases("Dequeued")[:1], "root/elsewhere", "responseObject", "status", "quota")
	}},
	{"a job costs ten writes more", "job-budget", func(r *recording) {
		i := r.phases("Dequeued")[0]
		for n := range 10 {
			r.again(i, i, 0, map[string]any{"auditID": strconv.Itoa(n)})
		}
	}},
}

// waited reports whether the unit of a line had been given a reason before.
func (r *recording) waited(line int) bool {
	uid := at(r.lines[line], "responseObject", "metadata", "uid")
	for _, e := range r.lines[:line] {
		if at(e, "responseObject", "metadata", "uid") == uid && at(e, "responseObject", "status", "reason") != "" {
			return true
		}
	}
	return false
}

// endOf returns the write that ended the job of a line.
func (r *recording) endOf(job int) int {
	uid := at(r.lines[job], "responseObject", "metadata", "uid")
	return r.find("end of a job", func(e map[string]any) bool {
		if at(e, "responseObject", "metadata", "uid") != uid {
			return false
		}
		list, _, _ := unstructured.NestedSlice(e, "responseObject", "status", "conditions")
		return slices.ContainsFunc(list, func(c any) bool {
			m := c.(map[string]any)
			return m["status"] == "True" && (m["type"] == "Succeeded" || m["type"] == "Complete")
		})
	})[0]
}

func TestEveryMutationOfAGoodLogIsReported(t *testing.T) {
	s := newScript(t)
	goodStory(s)
	for name, of := range map[string]struct {
		raw     []byte
		options Options
	}{
		"script": {s.bytes(), Options{Growth: true}},
		// It is older than charges by pods: see TestARecordingFromBeforePodsWereCharged.
		"good.jsonl.gz": {unzip(t, "testdata/good.jsonl.gz"), Options{Growth: true, Skip: []string{"over-limit-by-pods"}}},
	} {
		t.Run(name, func(t *testing.T) {
			raw, options := of.raw, of.options
			if got := rulesOf(t, parseRecording(t, raw).log(), options); len(got) > 0 {
				report, _ := parseRecording(t, raw).log().Check(options)
				t.Fatalf("the good log breaks %q: %v", got, report.Err())
			}
			for _, m := range mutations {
				if slices.Contains(options.Skip, m.rule) {
					continue
				}
				t.Run(m.name, func(t *testing.T) {
					r := parseRecording(t, raw)
					r.spread()
					m.mutate(r)
					if got := rulesOf(t, r.log(), options); !slices.Contains(got, m.rule) {
						t.Errorf("reported %q, and not %s", got, m.rule)
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
	if err != nil {
		t.Fatal(err)
	}
	report, err := log.Check(Options{})
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	report, err := log.Check(Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range report.Violations() {
		got = append(got, v.Rule+" "+v.Object)
	}
	want := []string{"over-limit-by-pods Job team-a/j2", "over-limit-by-pods Job team-b/j3", "over-limit-by-pods PyTorchJob team-a/p2"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

var rulePattern = regexp.MustCompile(`\.fail\("([a-z-]+)"`)

// rulesInSource returns the rules of all checks.
func rulesInSource(t *testing.T) map[string]bool {
	sources, err := filepath.Glob("checks/*.go")
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]bool{}
	for _, path := range sources {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
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
		if err != nil {
			t.Fatal(err)
		}
		tests = append(tests, text...)
	}
	for rule := range rulesInSource(t) {
		if !regexp.MustCompile(`[" ]` + rule + `[" ]`).Match(tests) {
			t.Errorf("no test has rule %s fire", rule)
		}
	}
}
