package scheduler

import "time"

// ExplainInterval is the shortest time between two explanations while other writes are in progress,
// if the number of explanations in progress is limited.
const ExplainInterval = 50 * time.Millisecond

// outbox stores which writes are requested and which are in progress, and decides in which order
// they are sent. Most writes, such as an admission, are urgent: they are sent at once, in the order
// of the requests. Explanations of why units wait come in bursts and must not delay the urgent
// writes, so their number and rate can be limited.
//
// Invariants:
//
//   - At most one write of a unit is in progress. Of the writes that are requested in the meantime,
//     only the latest is sent when the outcome is known.
//   - A unit is in one of the lists while a write of it is requested and none is in progress. A
//     list may also contain units for which no write, or another write, is requested now.
//   - urgent and explaining count the units with a write in progress.
type outbox struct {
	// ready are the units with an urgent write.
	ready []*unit
	// explanations are the units with an explanation to send. Those that can never fit are also in
	// impossible and come first.
	explanations, impossible []*unit

	// explaining is the number of explanations in progress, and urgent the number of all other writes
	// in progress.
	explaining, urgent int
	// mostExplaining is the maximum number of explanations in progress; 0 means no limit.
	mostExplaining int
	// explainAt is when the next explanation may be sent if urgent is not 0.
	explainAt time.Time
	// seq is the number of the last write.
	seq uint64
}

// unitWrite is the part of a unit that belongs to the outbox.
type unitWrite struct {
	// seq is the number of the write in progress; 0 if there is none.
	seq uint64
	// sent is the kind of the write in progress and wanted the kind of the next one; 0 if there is
	// none.
	sent, wanted Kind
	// ready and explaining are whether the unit is in the lists ready and explanations of the outbox.
	ready, explaining bool
}

// pending reports whether a write of the kind is requested or in progress.
func (w *unitWrite) pending(kind Kind) bool { return w.wanted == kind || w.sent == kind }

// drop withdraws the request for a write of the kind.
func (w *unitWrite) drop(kind Kind) {
	if w.wanted == kind {
		w.wanted = 0
	}
}

// want requests a write. A later request replaces an earlier one, but an explanation replaces no other write.
func (o *outbox) want(u *unit, kind Kind) {
	if kind == Explain && u.write.wanted != 0 {
		return
	}
	if u.write.seq != 0 && u.write.sent == kind && kind != Explain {
		return
	}
	u.write.wanted = kind
	o.post(u)
}

// wantFirst moves the requested explanation of the unit before others.
func (o *outbox) wantFirst(u *unit) { o.impossible = append(o.impossible, u) }

// post adds the unit to the list for its requested write, if no write is in progress.
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

// answered processes the outcome of the write with the number and returns the kind of the write. It
// returns false if the unit is nil or has no such write in progress. The next requested write is
// sent after a call of post.
func (o *outbox) answered(u *unit, seq uint64) (Kind, bool) {
	if u == nil || u.write.seq != seq {
		return 0, false
	}
	kind := u.write.sent
	o.finish(u)
	return kind, true
}

// discard removes all writes of the unit.
func (o *outbox) discard(u *unit) {
	u.write.wanted = 0
	o.finish(u)
}

// finish records that no write of the unit is in progress.
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

// composer returns the requested write of a unit, or false if it is no longer needed.
type composer func(*unit, Kind, time.Time) (Write, bool)

// plan removes and returns the writes that may be sent now, in order.
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
	clear(o.ready) // the array must not keep units that are gone
	o.ready = o.ready[:0]
	for len(o.impossible) > 0 && o.mayExplain() {
		plan = o.explainNext(plan, &o.impossible, now, compose)
	}
	for len(o.explanations) > 0 && o.mayExplain() && o.paced(now) {
		plan = o.explainNext(plan, &o.explanations, now, compose)
	}
	return plan
}

// mayExplain reports whether the number of explanations allows another one.
func (o *outbox) mayExplain() bool {
	return o.mostExplaining == 0 || o.explaining < o.mostExplaining
}

// paced reports whether the time since the last explanation allows another one.
func (o *outbox) paced(now time.Time) bool {
	return o.mostExplaining == 0 || o.urgent == 0 || !now.Before(o.explainAt)
}

// next returns when the next requested explanation may be sent if nothing happens before. It is
// zero if none is requested or if another one must finish first.
func (o *outbox) next() time.Time {
	if len(o.explanations) > 0 && o.explaining < o.mostExplaining {
		return o.explainAt
	}
	return time.Time{}
}

// explainNext adds the explanation of the first unit of the list to the plan.
func (o *outbox) explainNext(plan Plan, list *[]*unit, now time.Time, compose composer) Plan {
	u := (*list)[0]
	(*list)[0] = nil // the array of the slice is only released when the slice grows
	*list = (*list)[1:]
	u.write.explaining = false
	if u.write.wanted != Explain {
		return plan
	}
	return o.send(plan, u, now, compose)
}

// send adds the requested write of the unit to the plan, if it is still needed.
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
