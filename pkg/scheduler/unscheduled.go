package scheduler

import (
	"fmt"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

const (
	// UnscheduledAfter is how long the scheduler must find no node for a unit's pods before the unit shows it.
	UnscheduledAfter = 5 * time.Second
	// UnscheduledInterval is the shortest time between two messages about the pods of a unit.
	UnscheduledInterval = 30 * time.Second
	// PodlessSoon is how long a unit that requests pods can have none after its admission before it shows that. The
	// API server might refuse its pods.
	PodlessSoon = 5 * time.Second
	// PodlessAfter replaces PodlessSoon while more than fewPodless units have no pods. Their operator is then busy,
	// and this is not worth a write for each unit. It counts from the last time that one of them got pods.
	PodlessAfter = 30 * time.Second
	// Overtaken is how much later a unit with pods must have been admitted to show that a unit without pods is not just
	// waiting for a busy operator. The Job controller has been seen to start Jobs up to 46 s out of order.
	Overtaken  = 2 * time.Minute
	fewPodless = 10
)

// unscheduled watches units that hold quota but have no pods, or pods that the scheduler finds no node for. Usually
// there are few.
type unscheduled struct {
	// units are the watched units, and those that show such a message.
	units map[*unit]*unscheduledUnit
	// podless are the units that have had no pods for PodlessSoon.
	podless map[*unit]struct{}
	// progress is when one of podless last got pods; if none has, PodlessSoon before the first of them was found.
	// latest is the latest admission of a unit that has pods.
	progress, latest instant
	// checkAt is when to compare what they show with their pods; 0 means never.
	checkAt instant
}

// unscheduledUnit is what is known about a watched unit.
type unscheduledUnit struct {
	// since is when the unit first had such pods; 0 if not known yet. podless is how long it had no pods when that
	// became too long; 0 if it did not.
	since   instant
	podless time.Duration
	// message is what the unit shows, since at; empty if it shows nothing or if the message was written before the
	// start.
	message string
	at      instant
}

func newUnscheduled() unscheduled {
	return unscheduled{units: map[*unit]*unscheduledUnit{}, podless: map[*unit]struct{}{}}
}

func (w *unscheduled) forget(u *unit) {
	delete(w.units, u)
	delete(w.podless, u)
}

// seeScheduling requests a comparison if the unit has such pods, had some, or shows it.
func (s *Scheduler) seeScheduling(u *unit, now time.Time) {
	w := &s.unscheduled
	if u.holder == nil {
		delete(w.podless, u)
	} else if s.pods.Pods(u.holder.Holder) > 0 {
		if _, was := w.podless[u]; was {
			delete(w.podless, u)
			w.progress = instantOf(now)
		}
		w.latest = max(w.latest, u.dequeuedAt)
	}
	if w.units[u] == nil {
		if !u.Unscheduled && s.unscheduledMessage(u) == "" {
			return
		}
		w.units[u] = &unscheduledUnit{}
	}
	w.checkAt = 1 // in the next round
}

// needsPods reports whether the unit has no pods but should, judging by its phase.
func (u *unit) needsPods() bool {
	return u.Phase == Dequeued && !u.Evicted && !u.Stopped && !u.Over && u.holder != nil && len(u.Demand.Requests) > 1 // one is JobsResource
}

// podlessAt returns when the unit can next show that it has no pods; 0 means never.
func (s *Scheduler) podlessAt(u *unit, now time.Time) instant {
	if !u.needsPods() {
		return 0
	}
	times := []instant{u.dequeuedAt.plus(PodlessSoon), u.dequeuedAt.plus(PodlessAfter), 0}
	if _, is := s.unscheduled.podless[u]; is {
		times[2] = s.unscheduled.progress.plus(PodlessAfter)
	}
	for _, at := range times {
		if at > instantOf(now) {
			return at
		}
	}
	return 0
}

// seePodless requests a comparison if the unit has had no pods for too long.
func (s *Scheduler) seePodless(u *unit, now time.Time) {
	w, at := &s.unscheduled, instantOf(now)
	if !u.needsPods() || at < u.dequeuedAt.plus(PodlessSoon) || s.pods.Pods(u.holder.Holder) > 0 {
		delete(w.podless, u)
		return
	}
	if len(w.podless) == 0 {
		w.progress = at.plus(-PodlessSoon)
	}
	w.podless[u] = struct{}{}
	stuck := at >= max(u.dequeuedAt, w.progress).plus(PodlessAfter) || w.latest >= u.dequeuedAt.plus(Overtaken)
	if len(w.podless) > fewPodless && !stuck {
		return
	}
	if w.units[u] == nil {
		w.units[u] = &unscheduledUnit{since: u.dequeuedAt}
	}
	if w.units[u].podless == 0 {
		w.units[u].podless = PodlessSoon
		if at >= u.dequeuedAt.plus(PodlessAfter) {
			w.units[u].podless = PodlessAfter
		}
	}
	w.checkAt = 1
}

// unscheduledMessage returns what the unit must show about its pods; empty for nothing.
func (s *Scheduler) unscheduledMessage(u *unit) string {
	if u.holder == nil || u.holder.units[0] != u || u.Phase != Dequeued && u.Phase != Running || u.Over || u.Evicted || u.Stopped {
		return ""
	}
	n, of, message := s.pods.Unschedulable(u.holder.Holder)
	switch known := s.unscheduled.units[u]; {
	case known != nil && known.podless > 0 && u.needsPods() && s.pods.Pods(u.holder.Holder) == 0:
		return fmt.Sprintf("no pod of the job exists %v after its admission; its events, or the log of its operator, say why", known.podless)
	case n == 0:
		return ""
	case n == 1 && of == 1:
		return fmt.Sprintf("the pod cannot be scheduled: %s", message)
	default:
		return fmt.Sprintf("%d of %d pods cannot be scheduled: %s", n, of, message)
	}
}

// watchScheduling requests the writes that mark units whose pods are missing or cannot be scheduled, or clear the mark.
func (s *Scheduler) watchScheduling(now time.Time) {
	w, at := &s.unscheduled, instantOf(now)
	if w.checkAt == 0 || at < w.checkAt {
		return
	}
	w.checkAt = 0
	var marked []*unit
	for u, known := range w.units {
		message := s.unscheduledMessage(u)
		switch {
		case u.Evicted || u.Stopped: // the requeue removes it
			delete(w.units, u)
		case message == "" && u.Unscheduled && u.Phase.holdsQuota():
			known.since = 0
			marked = append(marked, u)
		case message == "":
			delete(w.units, u)
		case known.since == 0:
			known.since = at
			w.checkAt = earliest(w.checkAt, at.plus(UnscheduledAfter))
		case u.Unscheduled && known.message == "": // written before the start
			known.message, known.at = message, at
		case u.Unscheduled && known.message == message:
		default:
			due := known.since.plus(UnscheduledAfter)
			if u.Unscheduled {
				due = known.at.plus(UnscheduledInterval)
			}
			if at < due {
				w.checkAt = earliest(w.checkAt, due)
			} else {
				marked = append(marked, u)
			}
		}
	}
	for _, u := range sortByKey(marked) {
		if u.write.wanted != 0 || u.write.seq != 0 {
			w.checkAt = earliest(w.checkAt, at.plus(overQuotaInterval)) // after the other write
			continue
		}
		kind := ClearUnscheduled
		if s.unscheduledMessage(u) != "" {
			kind = MarkUnscheduled
		}
		s.outbox.want(u, kind)
	}
}

// composeUnscheduled completes a MarkUnscheduled or ClearUnscheduled write. It returns false if the write is not
// needed: the unit may have ended while the write was held back.
func (s *Scheduler) composeUnscheduled(u *unit, w *Write) bool {
	known := s.unscheduled.units[u]
	if w.Kind == ClearUnscheduled || known == nil {
		return w.Kind == ClearUnscheduled && u.Unscheduled && u.Phase.holdsQuota()
	}
	w.Reason, w.Message = wellknown.ReasonPodsUnschedulable, s.unscheduledMessage(u)
	return w.Message != ""
}
