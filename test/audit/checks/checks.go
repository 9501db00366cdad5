package checks

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/test/audit/model"
)

// check is one law.
type check struct {
	name, doc string
	start     func() inspector
	// byResourceQuota: it is a law only where quota is by ResourceQuota.
	byResourceQuota bool
}

// inspector follows the writes in their order and reports what breaks its law.
type inspector interface {
	see(*model.World, *model.Change, *findings)
	finish(*model.World, *findings)
}

var all = []check{
	{name: "early-pod", doc: "no pod of a held job is created before its release, and every job that opts in is held from its creation", start: newEarlyPod},
	{name: "over-limit", doc: "no admission takes a node of the quota tree above its max, or a ResourceQuota above its hard limit", start: newOverLimit},
	{name: "wrong-quota", doc: "a unit is admitted by the group that the tree gives it, or by its namespace", start: newWrongQuota},
	{name: "refused-pod", doc: "no pod that an admitted job starts with is refused for a ResourceQuota", start: newRefusedPod, byResourceQuota: true},
	{name: "double-release", doc: "a job is released once each time its unit is dequeued, and not otherwise", start: newDoubleRelease},
	{name: "held-after-end", doc: "a unit ends when its job does, and not before", start: newHeldAfterEnd},
	{name: "early-return", doc: "an evicted unit gives its quota back when its job is suspended and its pods are gone", start: newEarlyReturn},
	{name: "request-mismatch", doc: "a unit asks for what its pod sets, and in the end its pods, ask for", start: newRequestMismatch},
	{name: "unit-moves", doc: "units move from phase to phase only as they may, and only by the one who may", start: newUnitMoves},
	{name: "two-leaders", doc: "nobody acts as a program but the process that holds its lease", start: newTwoLeaders},
	{name: "write-budget", doc: "a job costs no more writes than it may, a queue's or tree's status no more than one in 5 s", start: newWriteBudget},
}

// Names are the names of all checks.
func Names() []string {
	var names []string
	for _, c := range all {
		names = append(names, c.name)
	}
	return names
}

// Law is a check at its work.
type Law struct {
	inspector inspector
	found     *findings
}

// Start begins with all checks that the options leave in.
func Start(o *model.Options) ([]Law, error) {
	for _, name := range o.Skip {
		if !slices.Contains(Names(), name) {
			return nil, fmt.Errorf("there is no check %q; there are %s", name, strings.Join(Names(), ", "))
		}
	}
	var laws []Law
	for _, c := range all {
		if !slices.Contains(o.Skip, c.name) && (o.ResourceQuota || !c.byResourceQuota) {
			laws = append(laws, Law{c.start(), &findings{Result{Name: c.name, Doc: c.doc}}})
		}
	}
	return laws, nil
}

// See has the check look at a write.
func (l Law) See(w *model.World, c *model.Change) { l.inspector.see(w, c, l.found) }

// Finish is what the check has found once all writes were seen.
func (l Law) Finish(w *model.World) Result {
	l.inspector.finish(w, l.found)
	return l.found.Result
}

// Violation is one breach of a law.
type Violation struct {
	Check   string    `json:"check"`
	Rule    string    `json:"rule"`
	Object  string    `json:"object"`
	Message string    `json:"message"`
	Time    time.Time `json:"time"`
	// Line of the log, and the revision of the write that stands there.
	Line     int   `json:"line"`
	Revision int64 `json:"revision"`
}

func (v Violation) String() string {
	return fmt.Sprintf("%s %s [%s] %s: %s (line %d, revision %d)",
		v.Time.UTC().Format("15:04:05.000000"), v.Check, v.Rule, v.Object, v.Message, v.Line, v.Revision)
}

// maxKept is how many violations of one check are kept; the rest are counted.
const maxKept = 1000

// findings gathers what one check finds.
type findings struct{ Result }

// Result is what one check found.
type Result struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
	// Judged things, and those that the log shows too little of, or that the law
	// does not bind.
	Judged    int `json:"judged"`
	NotJudged int `json:"notJudged"`
	// Found counts the violations, of which the first are kept.
	Found      int         `json:"found"`
	Violations []Violation `json:"violations,omitempty"`
	Notes      []string    `json:"notes,omitempty"`
}

func (f *findings) fail(rule string, at model.Moment, object fmt.Stringer, format string, args ...any) {
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
