package audit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Report is the result of all checks of a log.
type Report struct {
	Log    *Log
	Checks []Check

	oversell string
	world    *world // at the end of the log
}

// ErrNothing is returned for a log without any job, unit or pod.
var ErrNothing = errors.New("the log contains no job, no unit and no pod, so there is nothing to check")

// Check replays the log and checks it against every law.
func (l *Log) Check(options Options) (Report, error) {
	o, err := options.complete()
	if err != nil {
		return Report{}, err
	}
	s, checks := l.judge(o)
	r := Report{l, checks, cmp.Or(options.Oversell, "1"), s}
	if len(s.jobs)+len(s.units)+len(s.pods) == 0 {
		return r, ErrNothing
	}
	return r, nil
}

// Violations returns the violations of all checks, in the order of the log.
func (r Report) Violations() []Violation {
	var all []Violation
	for _, c := range r.Checks {
		all = append(all, c.Violations...)
	}
	slices.SortStableFunc(all, func(a, b Violation) int { return int(a.Revision - b.Revision) })
	return all
}

// found counts all violations, including those that are not kept.
func (r Report) found() (total int) {
	for _, c := range r.Checks {
		total += c.Found
	}
	return total
}

// Err returns an error with the violations, or nil if there are none.
func (r Report) Err() error {
	all := r.Violations()
	if len(all) == 0 {
		return nil
	}
	var text strings.Builder
	total := r.found()
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
