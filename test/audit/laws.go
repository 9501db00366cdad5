package audit

import (
	"fmt"
	"time"
)

// law is a law and its state. see processes the writes in order and reports violations. finish, unless it is nil,
// reports at the end.
type law struct {
	name, doc string
	see       func(*world, *change, *Check)
	finish    func(*world, *Check)
}

func laws() []law {
	return []law{
		earlyPod(), overLimit(), wrongQuota(), doubleRelease(), heldAfterEnd(), earlyReturn(), unitMoves(), twoLeaders(), writeBudget(),
	}
}

// judge replays the log and checks each of its writes. It returns the state at the end.
func (l *Log) judge(o settings) (*world, []Check) {
	all := laws()
	checks := make([]Check, len(all))
	for i, law := range all {
		checks[i].Name, checks[i].Doc = law.name, law.doc
	}
	s := l.replay(o, func(s *world, c *change) {
		for i, law := range all {
			law.see(s, c, &checks[i])
		}
	})
	for i, law := range all {
		if law.finish != nil {
			law.finish(s, &checks[i])
		}
	}
	return s, checks
}

// Violation is a violation of a law.
type Violation struct {
	Check   string
	Rule    string
	Object  string
	Message string
	// Moment is the place of its write in the log.
	Moment
}

func (v Violation) String() string {
	return fmt.Sprintf("%s %s [%s] %s: %s (line %d, revision %d)",
		v.Time.UTC().Format("15:04:05.000000"), v.Check, v.Rule, v.Object, v.Message, v.Line, v.Revision)
}

// maxKept is the number of violations that are kept per law. Further ones are only counted.
const maxKept = 1000

// Check is the result of checking one law.
type Check struct {
	Name string
	Doc  string
	// Checked counts verified cases. NotChecked counts cases for which the log contains too
	// little information, or to which the law does not apply.
	Checked    int
	NotChecked int
	// Found counts the violations. Only the first ones are kept.
	Found      int
	Violations []Violation
	Notes      []string
}

func (f *Check) fail(rule string, at Moment, object fmt.Stringer, format string, args ...any) {
	f.Found++
	if len(f.Violations) < maxKept {
		f.Violations = append(f.Violations, Violation{Check: f.Name, Rule: rule, Object: object.String(), Message: fmt.Sprintf(format, args...), Moment: at})
	}
}

func (f *Check) note(format string, args ...any) {
	f.Notes = append(f.Notes, fmt.Sprintf(format, args...))
}

// requested returns when a write was requested. Its decision was made earlier.
func (w *write) requested() time.Time {
	if w.received.IsZero() {
		return w.Time
	}
	return w.received
}

// named is an object that is known only by name.
type named string

func (n named) String() string { return string(n) }
