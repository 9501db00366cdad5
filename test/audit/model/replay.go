package model

import "time"

// Replay applies all writes in order.
func (l *Log) Replay(o *Options, see func(*World, *Change)) *World {
	w := NewWorld(o, l.End(o))
	for _, write := range l.Writes {
		w.expect(write)
	}
	for _, write := range l.Writes {
		see(w, w.Apply(write))
	}
	return w
}

// End returns the time up to which the log is complete.
func (l *Log) End(o *Options) time.Time {
	if o.Until.After(l.To) {
		return o.Until
	}
	return l.To
}
