package audit

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"
)

// Options say what is known about the cluster beside its log.
type Options struct {
	// Controller and Extensions are the users of the two programs.
	Controller, Extensions string
	// Oversell is the rate by which limits are multiplied, a decimal; empty: 1.
	Oversell string
	// Grace is how long a unit may hold quota after its job's end; nil: 10 s.
	Grace *time.Duration
	// ResourceQuota: the cluster's quota is its ResourceQuotas, not a tree.
	ResourceQuota bool
	// TreeLag is how long after a change of the tree, of a ResourceQuota or of a
	// Queue the one before may still justify what is done; nil: 2 s.
	TreeLag *time.Duration
	// PodLag is how long after its creation a pod of somebody else need not be
	// counted yet in a ResourceQuota; nil: 2 s.
	PodLag *time.Duration
	// SuspendLag is how long after a job was suspended again its operator may
	// still create a pod of it; nil: 1 s.
	SuspendLag *time.Duration
	// Until is the time up to which the log is known to be complete, when that is
	// later than its last entry.
	Until time.Time
	// Skip names checks that are left out.
	Skip []string

	oversell *big.Rat
}

// Users of the two programs, unless the options say otherwise.
const (
	DefaultController = "system:serviceaccount:kube-queue:kube-queue-controller"
	DefaultExtensions = "system:serviceaccount:kube-queue:job-extensions"
)

func (o Options) complete() (*Options, error) {
	if o.Controller == "" {
		o.Controller = DefaultController
	}
	if o.Extensions == "" {
		o.Extensions = DefaultExtensions
	}
	for _, d := range []struct {
		to    **time.Duration
		value time.Duration
	}{{&o.Grace, 10 * time.Second}, {&o.TreeLag, 2 * time.Second}, {&o.PodLag, 2 * time.Second}, {&o.SuspendLag, time.Second}} {
		if *d.to == nil {
			*d.to = &d.value
		}
	}
	if o.Oversell == "" {
		o.Oversell = "1"
	}
	rate, ok := new(big.Rat).SetString(o.Oversell)
	if !ok || rate.Sign() < 0 || strings.ContainsAny(o.Oversell, "/eE") {
		return nil, fmt.Errorf("oversell rate %q is no decimal number", o.Oversell)
	}
	o.oversell = rate
	for _, name := range o.Skip {
		if !slices.ContainsFunc(checks, func(c check) bool { return c.name == name }) {
			return nil, fmt.Errorf("there is no check %q; there are %s", name, strings.Join(CheckNames(), ", "))
		}
	}
	return &o, nil
}

// program tells whether a write was made by one of the two programs.
func (o *Options) program(w *Write) bool { return w.User == o.Controller || w.User == o.Extensions }

// check is one law.
type check struct {
	name, doc string
	start     func() inspector
	// byResourceQuota: it is a law only where quota is by ResourceQuota.
	byResourceQuota bool
}

// inspector follows the writes in their order and tells what breaks its law.
type inspector interface {
	see(*world, *change, *findings)
	finish(*world, *findings)
}

var checks = []check{
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

// CheckNames are the names of all checks.
func CheckNames() []string {
	var names []string
	for _, c := range checks {
		names = append(names, c.name)
	}
	return names
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
type findings struct{ CheckResult }

// CheckResult is what one check found.
type CheckResult struct {
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

func (f *findings) fail(rule string, at Moment, object fmt.Stringer, format string, args ...any) {
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

// Report is what all checks found.
type Report struct {
	Lines      int           `json:"lines"`
	Entries    int           `json:"writes"`
	From       time.Time     `json:"from"`
	To         time.Time     `json:"to"`
	Unfinished bool          `json:"unfinished,omitempty"`
	Cut        int           `json:"cut,omitempty"`
	Unanswered int           `json:"unanswered,omitempty"`
	Jobs       []KindCount   `json:"jobs"`
	Units      int           `json:"units"`
	Pods       int           `json:"pods"`
	Trees      int           `json:"trees"`
	Quotas     int           `json:"resourceQuotas"`
	Checks     []CheckResult `json:"checks"`
	// Oversell is the rate that limits were multiplied by.
	Oversell string `json:"oversell"`
}

// KindCount counts the jobs of a kind, and those of them that were queued.
type KindCount struct {
	Kind   string `json:"kind"`
	Count  int    `json:"count"`
	Queued int    `json:"queued"`
}

// ErrNothing is returned for a log without any job, unit or pod.
var ErrNothing = errors.New("the log shows no job, no unit and no pod: there is nothing to check")

// Check replays the log and holds it against every law.
func (l *Log) Check(options Options) (Report, error) {
	o, err := options.complete()
	if err != nil {
		return Report{}, err
	}
	var inspectors []inspector
	var found []*findings
	for _, c := range checks {
		if !slices.Contains(o.Skip, c.name) && (o.ResourceQuota || !c.byResourceQuota) {
			inspectors = append(inspectors, c.start())
			found = append(found, &findings{CheckResult{Name: c.name, Doc: c.doc}})
		}
	}
	w := l.replay(o, func(w *world, c *change) {
		for i, inspector := range inspectors {
			inspector.see(w, c, found[i])
		}
	})
	r := l.report(w)
	for i, inspector := range inspectors {
		inspector.finish(w, found[i])
		r.Checks = append(r.Checks, found[i].CheckResult)
	}
	if len(w.jobs)+len(w.units)+len(w.pods) == 0 {
		return r, ErrNothing
	}
	return r, nil
}

// replay applies all writes in order.
func (l *Log) replay(o *Options, see func(*world, *change)) *world {
	w := newWorld(o, l.end(o))
	for _, write := range l.writes {
		w.expect(write)
	}
	for _, write := range l.writes {
		see(w, w.apply(write))
	}
	return w
}

// end is the time up to which the log is known to be complete.
func (l *Log) end(o *Options) time.Time {
	if o.Until.After(l.To) {
		return o.Until
	}
	return l.To
}

func (l *Log) report(w *world) Report {
	r := Report{
		Lines: l.Lines, Entries: l.Entries, From: l.From, To: l.To, Unfinished: l.Unfinished, Cut: l.Cut, Unanswered: l.Unanswered,
		Units: len(w.units), Pods: len(w.pods), Trees: w.forest.changes, Quotas: w.quotas(), Oversell: w.options.Oversell,
	}
	for _, row := range rows {
		count := KindCount{Kind: row.kind}
		if row.version != anyVersion && row.group != "batch" {
			count.Kind += "." + row.version
		}
		for _, j := range w.jobs {
			if j.row == row {
				count.Count++
				if j.wasUnit {
					count.Queued++
				}
			}
		}
		if count.Count > 0 {
			r.Jobs = append(r.Jobs, count)
		}
	}
	return r
}

// Violations are those of all checks, in the order of the log.
func (r Report) Violations() []Violation {
	var all []Violation
	for _, c := range r.Checks {
		all = append(all, c.Violations...)
	}
	slices.SortStableFunc(all, func(a, b Violation) int { return int(a.Revision - b.Revision) })
	return all
}

// Err is nil when nothing was found, and else tells what, at some length.
func (r Report) Err() error {
	all := r.Violations()
	if len(all) == 0 {
		return nil
	}
	var text strings.Builder
	total := 0
	for _, c := range r.Checks {
		total += c.Found
	}
	fmt.Fprintf(&text, "violations in the audit log: %d", total)
	for i, v := range all {
		if i == 20 {
			fmt.Fprintf(&text, "\n  and %d more", total-i)
			break
		}
		fmt.Fprintf(&text, "\n  %s", v)
	}
	return errors.New(text.String())
}
