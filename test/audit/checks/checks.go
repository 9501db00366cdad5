package checks

import (
	"fmt"
	"slices"
	"strings"
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

func byResourceQuota(o *facts.Options) bool { return o.ResourceQuota }

func byGrowth(o *facts.Options) bool { return o.Growth && byTree(o) }

func byTree(o *facts.Options) bool { return !o.ResourceQuota }

// inspector processes the writes in order and reports violations of its law.
type inspector interface {
	see(*state.State, *state.Change, *findings)
	finish(*state.State, *findings)
}

var all = []check{
	{name: "early-pod", doc: "no pod of a held job is created before its release, and every job that opts in is held from its creation", start: newEarlyPod},
	{name: "over-limit", doc: "no admission raises the use of a quota node above its max, or of a ResourceQuota above its hard limit", start: newOverLimit},
	{name: "over-limit-by-pods", doc: "no admission raises the use of a quota node above its max if pods count that request more than was admitted, or are left of jobs", start: newOverLimitByPods, applies: byTree},
	{name: "growth-shown", doc: "a quota node that is above its max because of pods shows it within 15 s by the condition OverQuota of a unit or of the tree", start: newGrowthShown, applies: byGrowth},
	{name: "wrong-quota", doc: "a unit is admitted to the quota group of its namespace in the tree, or to its namespace", start: newWrongQuota},
	{name: "refused-pod", doc: "no ResourceQuota rejects an initial pod of an admitted job", start: newRefusedPod, applies: byResourceQuota},
	{name: "double-release", doc: "a job is released exactly once each time its unit is admitted", start: newDoubleRelease},
	{name: "held-after-end", doc: "a unit ends when its job ends, and not before", start: newHeldAfterEnd},
	{name: "early-return", doc: "an evicted unit returns its quota only when its job is suspended and its pods are gone", start: newEarlyReturn},
	{name: "request-mismatch", doc: "the request of a unit equals the sum of its pod sets, and the sum of the pods of its job; a job is released with no more pods than were admitted", start: newRequestMismatch},
	{name: "unit-moves", doc: "units change their phase only along allowed transitions, written by the program that owns the transition", start: newUnitMoves},
	{name: "two-leaders", doc: "only the process that holds the lease writes as the program", start: newTwoLeaders},
	{name: "write-budget", doc: "the writes for a job stay within its budget, and the status of a queue or tree is written at most every 5 s", start: newWriteBudget},
}

// Names returns the names of all checks.
func Names() []string {
	var names []string
	for _, c := range all {
		names = append(names, c.name)
	}
	return names
}

// Law is a running check.
type Law struct {
	inspector inspector
	found     *findings
}

// Start starts all checks that the options do not skip.
func Start(o *facts.Options) ([]Law, error) {
	for _, name := range o.Skip {
		if !slices.Contains(Names(), name) {
			return nil, fmt.Errorf("unknown check %q; known checks: %s", name, strings.Join(Names(), ", "))
		}
	}
	var laws []Law
	for _, c := range all {
		if !slices.Contains(o.Skip, c.name) && (c.applies == nil || c.applies(o)) {
			laws = append(laws, Law{c.start(), &findings{Result{Name: c.name, Doc: c.doc}}})
		}
	}
	return laws, nil
}

// See passes a write to the check.
func (l Law) See(s *state.State, c *state.Change) { l.inspector.see(s, c, l.found) }

// Finish returns the result of the check after all writes.
func (l Law) Finish(s *state.State) Result {
	l.inspector.finish(s, l.found)
	return l.found.Result
}

// Violation is a violation of a law.
type Violation struct {
	Check   string    `json:"check"`
	Rule    string    `json:"rule"`
	Object  string    `json:"object"`
	Message string    `json:"message"`
	Time    time.Time `json:"time"`
	// Line is the line of the log, Revision the revision of its write.
	Line     int   `json:"line"`
	Revision int64 `json:"revision"`
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
	Name string `json:"name"`
	Doc  string `json:"doc"`
	// Checked counts verified cases. NotChecked counts cases for which the log contains too
	// little information, or to which the law does not apply.
	Checked    int `json:"checked"`
	NotChecked int `json:"notChecked"`
	// Found counts the violations; the first ones are retained.
	Found      int         `json:"found"`
	Violations []Violation `json:"violations,omitempty"`
	Notes      []string    `json:"notes,omitempty"`
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
