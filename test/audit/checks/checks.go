package checks

import (
	"fmt"
	"time"

	"kube-queue.dev/kube-queue/test/audit/facts"
	"kube-queue.dev/kube-queue/test/audit/state"
)

// check is a check of one law.
type check struct {
	name, doc string
	start     func() inspector
	// applies reports whether the law applies; nil if it always does.
	applies func(*facts.Options) bool
}

// inspector processes the writes in order and reports violations of its law.
type inspector interface {
	see(*state.State, *state.Change, *findings)
}

// finisher is an inspector that has something to report at the end.
type finisher interface {
	finish(*state.State, *findings)
}

// each is an inspector that remembers nothing.
type each func(*state.State, *state.Change, *findings)

func (e each) see(s *state.State, c *state.Change, f *findings) { e(s, c, f) }

func stateless(e each) func() inspector { return func() inspector { return e } }

var all = []check{
	{name: "early-pod", doc: "no pod of a held job is created before its release, and every job that opts in is held from its creation", start: stateless(seeEarly)},
	{name: "over-limit", doc: "no admission raises the use of a quota node above its max, or of a ResourceQuota above its hard limit, also if pods count that request more than was admitted, or are left of jobs", start: newOverLimit},
	{name: "wrong-quota", doc: "a unit is admitted to the quota group of its namespace in the tree, or to its namespace", start: stateless(seeGroup)},
	{name: "refused-pod", doc: "no ResourceQuota rejects an initial pod of an admitted job", start: newRefusedPod, applies: func(o *facts.Options) bool { return o.ResourceQuota }},
	{name: "double-release", doc: "a job is released exactly once each time its unit is admitted", start: newDoubleRelease},
	{name: "held-after-end", doc: "a unit ends when its job ends, and not before", start: newHeldAfterEnd},
	{name: "early-return", doc: "an evicted unit returns its quota only when its job is suspended and its pods are gone", start: stateless(seeReturn)},
	{name: "unit-moves", doc: "units change their phase only along allowed transitions, written by the program that owns the transition", start: stateless(seeMove)},
	{name: "two-leaders", doc: "only the process that holds the lease writes as the program", start: newTwoLeaders},
	{name: "write-budget", doc: "the writes for a job stay within its budget, and the status of a queue or tree is written at most every 5 s", start: newWriteBudget},
}

// Run replays a log and checks each of its writes. It returns the state at the end.
func Run(l *facts.Log, o *facts.Options) (*state.State, []Result) {
	var running []inspector
	var found []*findings
	for _, c := range all {
		if c.applies == nil || c.applies(o) {
			running = append(running, c.start())
			found = append(found, &findings{Result{Name: c.name, Doc: c.doc}})
		}
	}
	s := state.Replay(l, o, func(s *state.State, c *state.Change) {
		for i, r := range running {
			r.see(s, c, found[i])
		}
	})
	var results []Result
	for i, r := range running {
		if last, is := r.(finisher); is {
			last.finish(s, found[i])
		}
		results = append(results, found[i].Result)
	}
	return s, results
}

// Violation is a violation of a law.
type Violation struct {
	Check   string
	Rule    string
	Object  string
	Message string
	Time    time.Time
	// Line is the line of the log, Revision the revision of its write.
	Line     int
	Revision int64
}

func (v Violation) String() string {
	return fmt.Sprintf("%s %s [%s] %s: %s (line %d, revision %d)",
		v.Time.UTC().Format("15:04:05.000000"), v.Check, v.Rule, v.Object, v.Message, v.Line, v.Revision)
}

// maxKept is the number of violations per check that are retained; further ones are only
// counted.
const maxKept = 1000

// findings collects the result of a check.
type findings struct{ Result }

// Result is the result of one check.
type Result struct {
	Name string
	Doc  string
	// Checked counts verified cases. NotChecked counts cases for which the log contains too
	// little information, or to which the law does not apply.
	Checked    int
	NotChecked int
	// Found counts the violations; the first ones are retained.
	Found      int
	Violations []Violation
	Notes      []string
}

func (f *findings) fail(rule string, at facts.Moment, object fmt.Stringer, format string, args ...any) {
	f.Found++
	if len(f.Violations) < maxKept {
		f.Violations = append(f.Violations, Violation{
			Check: f.Name, Rule: rule, Object: object.String(), Message: fmt.Sprintf(format, args...),
			Time: at.Time, Line: at.Line, Revision: at.Revision,
		})
	}
}

func (f *findings) note(format string, args ...any) {
	f.Notes = append(f.Notes, fmt.Sprintf(format, args...))
}
