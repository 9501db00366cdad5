package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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
	log, err := Read(bytes.NewReader(encode(r.t, r.lines)))
	if err != nil {
		r.t.Fatal(err)
	}
	return log
}

// at returns the value at a path as text.
func at(e map[string]any, path string) string {
	v, _, _ := unstructured.NestedFieldNoCopy(e, strings.Split(path, ".")...)
	switch v.(type) {
	case string, bool, float64:
		return fmt.Sprint(v)
	}
	return ""
}

func uidOf(e map[string]any) string { return at(e, "responseObject.metadata.uid") }

// find returns the successful writes that a function selects. At least one must exist.
func (r *recording) find(what string, pick func(e map[string]any) bool) []int {
	r.t.Helper()
	var found []int
	for i, e := range r.lines {
		if pick(e) && at(e, "stage") == "ResponseComplete" && at(e, "responseStatus.code")[:1] == "2" {
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
		return at(e, path) != want
	})
}

func (r *recording) pods() []int { return r.where("verb create", "responseObject.kind Pod") }

// units returns the lines that have units.
func (r *recording) units() []int { return r.where("responseObject.kind QueueUnit") }

// phases returns the lines in which a unit gets into a phase.
func (r *recording) phases(phase string) []int {
	last := map[string]string{}
	return r.find("unit that becomes "+phase, func(e map[string]any) bool {
		if at(e, "objectRef.resource") != "queueunits" {
			return false
		}
		was, now := last[uidOf(e)], at(e, "responseObject.status.phase")
		last[uidOf(e)] = now
		return now == phase && was != phase
	})
}

// release returns the line of the first release.
func (r *recording) release() int {
	by := []string{"user.username " + extensions, "objectRef.subresource "}
	return r.find("release", func(e map[string]any) bool {
		return has(e, by) && (at(e, "responseObject.spec.runPolicy.suspend") == "false" || at(e, "responseObject.spec.suspend") == "false")
	})[0]
}

// of returns the first line that a list of objects at a path of a write has an object for.
func (r *recording) of(what, path string, is func(e, item map[string]any) bool) int {
	return r.find(what, func(e map[string]any) bool {
		list, _, _ := unstructured.NestedSlice(e, strings.Split(path, ".")...)
		return slices.ContainsFunc(list, func(item any) bool { return is(e, item.(map[string]any)) })
	})[0]
}

// podOf returns the line of the first pod of the job of a line.
func (r *recording) podOf(job int) int {
	return r.of("pod of a job", "responseObject.metadata.ownerReferences", func(e, owner map[string]any) bool {
		return has(e, []string{"verb create", "responseObject.kind Pod"}) && owner["uid"] == uidOf(r.lines[job])
	})
}

// endOf returns the line in which the job of a line ended.
func (r *recording) endOf(job int) int {
	return r.of("end of a job", "responseObject.status.conditions", func(e, c map[string]any) bool {
		return uidOf(e) == uidOf(r.lines[job]) && c["status"] == "True" && (c["type"] == "Succeeded" || c["type"] == "Complete")
	})
}

// unitOf returns the line in which the unit of the job of a line gets into a phase.
func (r *recording) unitOf(job int, phase string) int {
	all := r.phases(phase)
	i := slices.IndexFunc(all, func(i int) bool {
		return at(r.lines[i], "responseObject.spec.consumerRef.uid") == uidOf(r.lines[job])
	})
	if i < 0 {
		r.t.Fatalf("the recording has no unit that becomes %s for line %d", phase, job)
	}
	return all[i]
}

// waited reports whether the unit of a line had been given a reason before.
func (r *recording) waited(line int) bool {
	return slices.ContainsFunc(r.lines[:line], func(e map[string]any) bool {
		return uidOf(e) == uidOf(r.lines[line]) && at(e, "responseObject.status.reason") != ""
	})
}

// place are the fields that order a line.
var place = []string{"requestReceivedTimestamp", "stageTimestamp", "responseObject.metadata.resourceVersion"}

func put(e map[string]any, path string, value any) {
	_ = unstructured.SetNestedField(e, value, strings.Split(path, ".")...)
}

// swap exchanges the places of two lines: their times and revisions.
func (r *recording) swap(i, j int) {
	for _, path := range place {
		x, y := at(r.lines[i], path), at(r.lines[j], path)
		put(r.lines[i], path, y)
		put(r.lines[j], path, x)
	}
}

func (r *recording) drop(lines ...int) {
	for _, i := range slices.Backward(lines) {
		r.lines = slices.Delete(r.lines, i, i+1)
	}
}

// move puts a line shortly after another one.
func (r *recording) move(e, after map[string]any, shift int64) {
	for _, path := range place {
		put(e, path, at(after, path))
	}
	revision, _ := strconv.ParseInt(at(after, place[2]), 10, 64)
	put(e, place[2], strconv.FormatInt(revision+shift, 10))
}

// again repeats a line right after another one, with changed fields.
func (r *recording) again(line, after int, shift int64, fields map[string]any) {
	e := runtime.DeepCopyJSON(r.lines[line])
	for path, value := range fields {
		put(e, path, value)
	}
	r.move(e, r.lines[after], shift)
	r.lines = slices.Insert(r.lines, after+1, e)
}

// set sets a field of lines.
func (r *recording) set(lines []int, path string, value any) {
	for _, i := range lines {
		put(r.lines[i], path, value)
	}
}

// spread leaves gaps between the revisions, so that lines can be inserted.
func (r *recording) spread() {
	for _, e := range r.lines {
		if n, err := strconv.ParseInt(at(e, place[2]), 10, 64); err == nil {
			put(e, place[2], strconv.FormatInt(n*10, 10))
		}
	}
}

var mutations = []struct {
	name, rule string
	mutate     func(*recording)
}{
	{"a pod comes before its job's release", "early-pod", func(r *recording) { r.swap(r.release(), r.podOf(r.release())) }},
	{"a job is created without being suspended", "hold-missed", func(r *recording) {
		r.set(r.where("verb create", "responseObject.spec.runPolicy.suspend true"), "responseObject.spec.runPolicy.suspend", false)
	}},
	{"a unit requests more than there is", "over-limit", func(r *recording) { r.set(r.units(), "responseObject.spec.resource.cpu", "400") }},
	{"a unit's request is no quantity", "unreadable", func(r *recording) { r.set(r.units(), "responseObject.spec.resource.cpu", "many") }},
	{"the pods request more than was admitted", "over-limit-by-pods", func(r *recording) {
		r.set(r.pods(), "responseObject.spec.overhead", map[string]any{"cpu": "9"})
	}},
	{"a job ends while its pods run", "over-limit-by-pods", func(r *recording) {
		r.drop(r.where("objectRef.resource pods", "responseObject.status.phase Succeeded")...)
	}},
	{"units are dequeued before those they waited for have ended", "over-limit", func(r *recording) {
		created := r.where("objectRef.resource queueunits", "verb create")
		last := r.lines[created[len(created)-1]]
		for n, i := range r.phases("Dequeued") {
			if r.waited(i) {
				r.move(r.lines[i], last, int64(n%9+1))
			}
		}
	}},
	{"the ends of all units are lost", "held-after-end", func(r *recording) { r.drop(r.phases("Succeeded")...) }},
	{"a unit ends before its job", "ended-too-early", func(r *recording) {
		r.swap(r.unitOf(r.release(), "Succeeded"), r.endOf(r.release()))
	}},
	{"a release is done twice", "double-release", func(r *recording) {
		release := r.release()
		r.again(release, release, 1, map[string]any{"responseObject.spec.runPolicy.suspend": true, "responseObject.spec.suspend": true, "user.username": admin})
		r.again(release, release+1, 1, nil)
	}},
	{"a release comes before the dequeue", "release-without-dequeue", func(r *recording) {
		r.swap(r.release(), r.unitOf(r.release(), "Dequeued"))
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
		r.again(r.unitOf(r.release(), "Dequeued"), r.podOf(r.release()), 1, map[string]any{"responseObject.status.phase": "Backoff"})
	}},
	{"a person dequeues a unit", "wrong-writer", func(r *recording) { r.set(r.phases("Dequeued")[:1], "user.username", admin) }},
	{"a unit is admitted by another group", "wrong-quota", func(r *recording) {
		r.set(r.phases("Dequeued")[:1], "responseObject.status.quota", "root/elsewhere")
	}},
	{"a job costs ten writes more", "job-budget", func(r *recording) {
		i := r.phases("Dequeued")[0]
		for n := range 10 {
			r.again(i, i, 0, map[string]any{"auditID": strconv.Itoa(n)})
		}
	}},
}

func TestEveryMutationOfAGoodLogIsReported(t *testing.T) {
	s := newScript(t)
	goodStory(s)
	for name, raw := range map[string][]byte{"script": s.bytes(), "good.jsonl.gz": unzip(t, "testdata/good.jsonl.gz")} {
		t.Run(name, func(t *testing.T) {
			// The recording is older than charges by pods: see TestARecordingFromBeforePodsWereCharged.
			known := rulesOf(t, parseRecording(t, raw).log(), Options{})
			if len(known) > 0 && (name == "script" || !slices.Equal(known, []string{"over-limit-by-pods"})) {
				t.Fatalf("the good log breaks %q", known)
			}
			for _, m := range mutations {
				if slices.Contains(known, m.rule) {
					continue
				}
				t.Run(m.name, func(t *testing.T) {
					r := parseRecording(t, raw)
					r.spread()
					m.mutate(r)
					if got := rulesOf(t, r.log(), Options{}); !slices.Contains(got, m.rule) {
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
