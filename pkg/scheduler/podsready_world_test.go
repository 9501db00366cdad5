package scheduler_test

import (
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// awaitsPodsOfOthers reports whether the queue of the unit admits nothing until another unit's pods are ready.
func (w *world) awaitsPodsOfOthers(u *scheduler.Unit) bool {
	return w.awaitsPodsOf(u, func(*scheduler.Unit) bool { return true })
}

func (w *world) awaitsPodsOf(u *scheduler.Unit, counts func(other *scheduler.Unit) bool) bool {
	set := w.queueOf(u)
	if !set.PodsReady.Blocks || set.PodsReady.Timeout <= 0 {
		return false
	}
	group, _ := w.tree.Place(u.Namespace(), u.QuotaName)
	for _, other := range w.units {
		if other == u || !counts(other) || other.Phase != scheduler.Reserved && !(other.AwaitsPods && holds(other) && !other.Over) {
			continue
		}
		if g, refusal := w.tree.Place(other.Namespace(), other.QuotaName); refusal == nil && g.Queue() == group.Queue() {
			return true
		}
	}
	return false
}

// checkWaitForPods verifies that a write that is about to be sent does not admit a unit too early, and that it records
// whether the queue waits for its pods and gates those that its job adds.
func (w *world) checkWaitForPods(write scheduler.Write) {
	w.t.Helper()
	u := w.units[write.Key]
	if u == nil || u.Version != write.Version || write.Kind != scheduler.Dequeue && write.Kind != scheduler.Reserve {
		return
	}
	if write.Kind == scheduler.Dequeue && write.AwaitsPods != (w.queueOf(u).PodsReady.Timeout > 0) {
		w.t.Fatalf("unit %s is admitted, and its pods are awaited: %t", u.Key, write.AwaitsPods)
	}
	if write.Kind == scheduler.Dequeue && write.Gates != w.queueOf(u).Gates {
		w.t.Fatalf("unit %s is admitted, and its growth is gated: %t", u.Key, write.Gates)
	}
	// A unit that replaces a lost one can come after the decision.
	decided := func(other *scheduler.Unit) bool {
		attempt, replaces := w.restored[other.UID]
		return !replaces || other.Attempts != attempt
	}
	if u.Phase == scheduler.Waiting && len(w.news) == 0 && len(w.sent) == 0 && len(w.outcomes) == 0 && w.awaitsPodsOf(u, decided) {
		w.t.Fatalf("unit %s is admitted before the pods of others are ready", u.Key)
	}
}

// isUnready reports whether a unit may be evicted for this reason because its pods are not ready in time.
func (w *world) isUnready(u *scheduler.Unit, reason wellknown.Reason) bool {
	return reason == wellknown.ReasonPodsReadyTimeout && u.AwaitsPods && (u.Phase == scheduler.Dequeued || u.Phase == scheduler.Running)
}
