package facts

import "time"

// Moment is a position in the log.
type Moment struct {
	Time     time.Time
	Revision int64
	Line     int
}

// Moment returns the place of the write.
func (w *Write) Moment() Moment { return Moment{w.Time, w.Revision, w.Line} }

// IsZero reports whether the moment did not occur.
func (m Moment) IsZero() bool { return m.Line == 0 }

// Before reports whether m occurred before the other moment. A moment that did not occur is after
// all others.
func (m Moment) Before(other Moment) bool {
	if m.IsZero() || other.IsZero() {
		return !m.IsZero()
	}
	if m.Revision != other.Revision {
		return m.Revision < other.Revision
	}
	return m.Time.Before(other.Time)
}

// CameBefore reports whether the moment occurred before a time.
func (m Moment) CameBefore(at time.Time) bool { return !m.IsZero() && m.Time.Before(at) }

// Or returns the other moment if m did not occur.
func (m Moment) Or(other Moment) Moment {
	if m.IsZero() {
		return other
	}
	return m
}
