package scheduler

import "time"

// ExplainInterval is the least time between two explanations while other writes are
// under way, where the number of explanations under way is bounded.
const ExplainInterval = 50 * time.Millisecond

// outbox keeps which writes are wanted and which are under way, and decides in which
// order they are sent. Others wait for most writes, such as a release: these are sent
// at once, in the order in which they were wanted. Explanations of why units wait come
// in crowds and must not hold up the others: their number and pace can be bounded.
//
// Invariants:
//
//   - At most one write of a unit is under way. What is wanted meanwhile is sent when
//     the outcome is in, and only the latest wish is.
//   - A unit is in one of the lists while a write of it is wanted and none is under way.
//     A list may also hold units of which no write, or another one, is wanted by now.
//   - urgent and explaining count the units with a write under way.
type outbox struct {
	// ready are the units with a write to be sent at once.
	ready []*unit
	// explanations are the units with an explanation to be sent. Those of them that can
	// never fit are also in impossible, and come first.
	explanations, impossible []*unit

	// explaining is the number of explanations under way, and urgent that of all other
	// writes.
	explaining, urgent int
	// mostExplaining is the most explanations that may be under way; 0: any number.
	mostExplaining int
	// explainAt is when the next explanation may be sent while urgent is not 0.
	explainAt time.Time
	// seq is the number of the last write.
	seq uint64
}

// unitWrite is the outbox's part of a unit.
type unitWrite struct {
	// seq is the number of the write under way, 0 when there is none.
	seq uint64
	// sent is the kind of the write under way, wanted that of the next, 0 when there is
	// none.
	sent, wanted Kind
	// ready and explaining: the unit is in the outbox's list of that name.
	ready, explaining bool
}

// pending reports whether a write of the kind is wanted or under way.
func (w *unitWrite) pending(kind Kind) bool { return w.wanted == kind || w.sent == kind }

// drop withdraws the wish for a write of the kind.
func (w *unitWrite) drop(kind Kind) {
	if w.wanted == kind {
		w.wanted = 0
	}
}

// want asks for a write; a later wish replaces an earlier one.
func (o *outbox) want(u *unit, kind Kind) {
	if u.write.seq != 0 && u.write.sent == kind && kind != Explain {
		return
	}
	u.write.wanted = kind
	o.post(u)
}

// wantFirst has the unit's explanation, which is wanted, sent before others.
func (o *outbox) wantFirst(u *unit) { o.impossible = append(o.impossible, u) }

// post puts the unit in the list of what is wanted of it, if no write is under way.
func (o *outbox) post(u *unit) {
	w := &u.write
	switch {
	case w.wanted == 0 || w.seq != 0:
	case w.wanted == Explain && !w.explaining:
		w.explaining = true
		o.explanations = append(o.explanations, u)
	case w.wanted != Explain && !w.ready:
		w.ready = true
		o.ready = append(o.ready, u)
	}
}

// answered takes in the outcome of the write with this number, and returns the write's
// kind; false when there is no unit, nil, or it has no such write under way, so that
// nobody waits for the outcome. What is wanted next is sent once post is called.
func (o *outbox) answered(u *unit, seq uint64) (Kind, bool) {
	if u == nil || u.write.seq != seq {
		return 0, false
	}
	kind := u.write.sent
	o.finish(u)
	return kind, true
}

// discard forgets what is wanted of the unit and what is under way.
func (o *outbox) discard(u *unit) {
	u.write.wanted = 0
	o.finish(u)
}

// finish notes that no write of the unit is under way.
func (o *outbox) finish(u *unit) {
	switch {
	case u.write.seq == 0:
	case u.write.sent == Explain:
		o.explaining--
	default:
		o.urgent--
	}
	u.write.seq, u.write.sent = 0, 0
}

// composer makes the write of a kind that is wanted of a unit; false when it is no longer
// needed.
type composer func(*unit, Kind, time.Time) (Write, bool)

// plan takes out what may be sent now, in the order in which it is to be sent.
func (o *outbox) plan(now time.Time, compose composer) Plan {
	plan := make(Plan, 0, len(o.ready))
	for _, u := range o.ready {
		u.write.ready = false
		if u.write.wanted == Explain {
			o.post(u)
			continue
		}
		plan = o.send(plan, u, now, compose)
	}
	o.ready = o.ready[:0]
	for len(o.impossible) > 0 && o.mayExplain() {
		plan = o.explainNext(plan, &o.impossible, now, compose)
	}
	for len(o.explanations) > 0 && o.mayExplain() && o.paced(now) {
		plan = o.explainNext(plan, &o.explanations, now, compose)
	}
	return plan
}

// mayExplain reports whether one more explanation may be under way.
func (o *outbox) mayExplain() bool {
	return o.mostExplaining == 0 || o.explaining < o.mostExplaining
}

// paced reports whether an explanation does not follow too closely on the one before it.
func (o *outbox) paced(now time.Time) bool {
	return o.mostExplaining == 0 || o.urgent == 0 || !now.Before(o.explainAt)
}

// next is when the next explanation that is wanted may be sent if nothing happens before;
// the zero time when none is wanted or the number under way has to fall first.
func (o *outbox) next() time.Time {
	if len(o.explanations) > 0 && o.explaining < o.mostExplaining {
		return o.explainAt
	}
	return time.Time{}
}

// explainNext adds the explanation of the list's first unit to the plan.
func (o *outbox) explainNext(plan Plan, list *[]*unit, now time.Time, compose composer) Plan {
	u := (*list)[0]
	(*list)[0] = nil // the slice shrinks, its array only when it grows again
	*list = (*list)[1:]
	u.write.explaining = false
	if u.write.wanted != Explain {
		return plan
	}
	return o.send(plan, u, now, compose)
}

// send adds the write that is wanted of the unit to the plan, if it is still needed.
func (o *outbox) send(plan Plan, u *unit, now time.Time, compose composer) Plan {
	if u.gone || u.write.wanted == 0 || u.write.seq != 0 {
		return plan
	}
	kind := u.write.wanted
	u.write.wanted = 0
	w, needed := compose(u, kind, now)
	if !needed {
		return plan
	}
	if kind == Explain {
		o.explaining++
		o.explainAt = now.Add(ExplainInterval)
	} else {
		o.urgent++
	}
	o.seq++
	w.Seq = o.seq
	u.write.seq, u.write.sent = w.Seq, kind
	return append(plan, w)
}
