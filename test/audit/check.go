package audit

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/test/audit/checks"
	"kube-queue.dev/kube-queue/test/audit/facts"
	"kube-queue.dev/kube-queue/test/audit/state"
)

// Report is the result of all checks of a log.
type Report struct {
	*facts.Log
	// Doubts counts the units and pods that sums leave out, because the log does not show what became of them.
	Doubts int
	Jobs   []KindCount
	Units  int
	Pods   int
	Trees  int
	Quotas int
	Checks []checks.Result
	// Oversell is the rate by which limits were multiplied.
	Oversell string
}

// ErrNothing is returned for a log without any job, unit or pod.
var ErrNothing = errors.New("the log contains no job, no unit and no pod, so there is nothing to check")

// Check replays the log and checks it against every law.
func (l *Log) Check(options Options) (Report, error) {
	o, err := options.Complete()
	if err != nil {
		return Report{}, err
	}
	s, results := checks.Run(l.Log, o)
	r := l.report(s)
	r.Checks = results
	if len(s.Jobs)+len(s.Units)+len(s.Pods) == 0 {
		return r, ErrNothing
	}
	return r, nil
}

func (l *Log) report(s *state.State) Report {
	r := Report{
		Log: l.Log, Units: len(s.Units), Pods: len(s.Pods), Trees: s.Trees.Changes, Oversell: s.Options.Oversell, Doubts: s.Doubts,
	}
	for _, quotas := range s.Quotas {
		for _, q := range quotas {
			if q.LimitsPods() {
				r.Quotas++
			}
		}
	}
	for _, row := range facts.Rows() {
		count := KindCount{Kind: row.Kind}
		if row.Version != "" && row.Group != "batch" {
			count.Kind += "." + row.Version
		}
		for _, j := range s.Jobs {
			if j.Row == row {
				count.Count++
				if j.WasUnit {
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

// KindCount counts the jobs of a kind, and those of them that were queued.
type KindCount struct {
	Kind   string
	Count  int
	Queued int
}

// Violations returns the violations of all checks, in the order of the log.
func (r Report) Violations() []checks.Violation {
	var all []checks.Violation
	for _, c := range r.Checks {
		all = append(all, c.Violations...)
	}
	slices.SortStableFunc(all, func(a, b checks.Violation) int { return int(a.Revision - b.Revision) })
	return all
}

// Err returns an error with the violations, or nil if there are none.
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
