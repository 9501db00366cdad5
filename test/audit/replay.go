package audit

import "time"

// replay applies all writes in order.
func (l *history) replay(o *Options, see func(*world, *change)) *world {
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
func (l *history) end(o *Options) time.Time {
	if o.Until.After(l.To) {
		return o.Until
	}
	return l.To
}
