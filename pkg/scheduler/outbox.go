package scheduler

import "time"

// The shortest times between two explanations, if the number of explanations in progress is limited.
const (
	// ExplainInterval applies to first reasons and to reasons that replace one that is still true, while other writes are
	// in progress. Otherwise they are not delayed.
	ExplainInterval = 50 * time.Millisecond
	// PromptInterval applies to the first units of a queue that show an outdated cause, while other writes are in
	// progress. Otherwise they are not delayed.
	PromptInterval = 4 * time.Millisecond
	// RestInterval applies to all other units that show an outdated cause. While other writes are in progress,
	// ExplainInterval applies instead.
	RestInterval = 5 * time.Millisecond
)

// outbox stores which writes are requested and which are in progress, and decides the order in which they are sent.
// Most writes, such as admissions, are urgent: they are sent immediately, in the order of the requests. Explanations of
// why units wait come in bursts and must not delay urgent writes, so their number and rate can be limited. They are
// sent in lanes, each with its own rate.
//
// Invariants:
//
//   - At most one write of a unit is in progress. If more are requested in the meantime, only the latest is sent when
//     the outcome is known.
//   - A unit with a requested write and none in progress is in one of the lists. A list may also contain units for
//     which no write, or another write, is requested now.
//   - urgent and explaining count the units with a write in progress.
type outbox struct {
	// ready are the units with an urgent write.
	ready []*unit
	// explanations are the units with an explanation to send. Those that can never fit are also in impossible and come
	// first. Those that show an outdated cause are in prompt or in rest.
	explanations, impossible, prompt, rest []*unit

	// explaining is the number of explanations in progress, and urgent the number of all other writes
	// in progress.
	explaining, urgent int
	// mostExplaining is the maximum number of explanations in progress; 0 means no limit.
	mostExplaining int
	// explainedAt, promptAt and restAt are when the last explanation of each lane was sent.
	explainedAt, promptAt, restAt instant
	// seq is the number of the last write.
	seq uint64
	// denied are the units that are not written to because the API server denies it, and until when. Requested writes are
	// sent afterwards.
	denied map[*unit]instant
}

// unitWrite is the part of a unit that belongs to the outbox.
type unitWrite struct {
	// seq is the number of the write in progress; 0 if there is none.
	seq uint64
	// sent is the kind of the write in progress and wanted the kind of the next one; 0 if there is
	// none.
	sent, wanted Kind
	// ready, explaining, prompt and resting are whether the unit is in the outbox lists ready, explanations, prompt
	// and rest.
	ready, explaining, prompt, resting bool
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

// wantFirst moves the requested explanation of the unit to the front.
func (o *outbox) wantFirst(u *unit) { o.impossible = append(o.impossible, u) }

// correct requests the explanation of a unit that shows an outdated cause.
func (o *outbox) correct(u *unit, prompt bool) {
	w := &u.write
	if w.wanted != 0 && w.wanted != Explain {
		return
	}
	w.wanted = Explain
	switch {
	case w.seq != 0: // it is sent after the write in progress
	case prompt && !w.prompt:
		w.prompt = true
		o.prompt = append(o.prompt, u)
	case !prompt && !w.prompt && !w.explaining && !w.resting:
		w.resting = true
		o.rest = append(o.rest, u)
	}
}

// post adds the unit to the list for its requested write, if no write is in progress.
func (o *outbox) post(u *unit) {
	w := &u.write
	switch {
	case w.wanted == 0 || w.seq != 0 || o.denied[u] != 0:
	case w.wanted == Explain && !w.explaining:
		w.explaining = true
		o.explanations = append(o.explanations, u)
	case w.wanted != Explain && !w.ready:
		w.ready = true
		o.ready = append(o.ready, u)
	}
}

// answered processes the outcome of the write with this number and returns its kind. It returns false if the unit is
// nil or this write is not in progress. Call post to send the next requested write.
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
	clear(o.ready) // so that the array does not keep removed units
	o.ready = o.ready[:0]
	for len(o.impossible) > 0 && o.mayExplain(0) {
		plan, _ = o.explainNext(plan, &o.impossible, now, compose)
	}
	for _, lane := range o.lanes() {
		for len(*lane.units) > 0 && o.mayExplain(lane.spare) && instantOf(now) >= lane.next() {
			var sent bool
			if plan, sent = o.explainNext(plan, lane.units, now, compose); sent {
				*lane.sentAt = instantOf(now)
			}
		}
	}
	return plan
}

// lane is a list of explanations that are sent at a limited rate, at most one per interval.
type lane struct {
	units    *[]*unit
	sentAt   *instant
	interval time.Duration
	// spare is how many of the allowed explanations the lane leaves to the lanes after it.
	spare int
}

// next returns when the next explanation of the lane may be sent.
func (l *lane) next() instant { return l.sentAt.plus(l.interval) }

// lanes returns the lanes in the order in which they are served.
func (o *outbox) lanes() [3]lane {
	spare := 0
	if o.mostExplaining > 1 && len(o.explanations)+len(o.rest) > 0 {
		spare = 1
	}
	lanes := [3]lane{{&o.prompt, &o.promptAt, 0, spare}, {&o.explanations, &o.explainedAt, 0, 0}, {&o.rest, &o.restAt, RestInterval, 0}}
	switch {
	case o.mostExplaining == 0:
		lanes[2].interval = 0
	case o.urgent > 0:
		lanes[0].interval, lanes[1].interval, lanes[2].interval = PromptInterval, ExplainInterval, ExplainInterval
	}
	return lanes
}

// mayExplain reports whether another explanation can be sent with this many to spare.
func (o *outbox) mayExplain(spare int) bool {
	return o.mostExplaining == 0 || o.explaining < o.mostExplaining-spare
}

// next returns when the next requested explanation can be sent if nothing else happens. It is 0 if none is requested
// or if another one must finish first.
func (o *outbox) next() (at instant) {
	for _, lane := range o.lanes() {
		if len(*lane.units) > 0 && o.mayExplain(lane.spare) {
			at = earliest(at, lane.next())
		}
	}
	return at
}

// explainNext adds the explanation of the first unit in the list to the plan, and reports whether it is still needed.
func (o *outbox) explainNext(plan Plan, list *[]*unit, now time.Time, compose composer) (Plan, bool) {
	u := (*list)[0]
	(*list)[0] = nil // the array of the slice is only released when the slice grows
	*list = (*list)[1:]
	switch list {
	case &o.prompt:
		u.write.prompt = false
	case &o.rest:
		u.write.resting = false
	default:
		u.write.explaining = false
	}
	if u.write.wanted != Explain {
		return plan, false
	}
	before := len(plan)
	plan = o.send(plan, u, now, compose)
	return plan, len(plan) > before
}

// send adds the requested write of the unit to the plan, if it is still needed.
func (o *outbox) send(plan Plan, u *unit, now time.Time, compose composer) Plan {
	if u.gone || u.write.wanted == 0 || u.write.seq != 0 || o.denied[u] != 0 {
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
	} else {
		o.urgent++
	}
	o.seq++
	w.Seq = o.seq
	u.write.seq, u.write.sent = w.Seq, kind
	return append(plan, w)
}
