package scheduler_test

import (
	"testing"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

const day = 24 * time.Hour

// byHand returns a world in which a hand-made unit uses a quota of 4 cpu, and another unit waits.
func byHand(t *testing.T, change ...func(*scheduler.Unit)) *world {
	w := newWorld(t, scheduler.Options{Policy: queue.RoundRobin}, leaf("root", cpu("4"), "a"))
	w.list()
	w.enqueue("a/hand", cpu("4"), append(change, func(u *scheduler.Unit) {
		if u.Renewal == nil {
			u.Renewal = &scheduler.Renewal{Timeout: day}
		}
	})...)
	w.enqueue("a/waits", cpu("4"))
	expectReleased(t, w, "a/hand")
	return w
}

func TestAUnitThatNobodyRenewsLosesItsQuota(t *testing.T) {
	w := byHand(t)
	w.after(day - time.Second)
	expectReleased(t, w, "a/hand")
	w.after(time.Second)
	expectReleased(t, w, "a/waits")
	ends := w.writes("a/hand", scheduler.Expire)
	if len(ends) != 1 || ends[0].Reason != wellknown.ReasonNotRenewed || ends[0].Message == "" {
		t.Fatalf("it was ended by %+v", ends)
	}
}

// TestPropertyChargedIsUsed found this: the end of the last pod replaced the write that ends the unit.
func TestAStoppedUnitThatNobodyRenewsEndsAlthoughItsLastPodEnds(t *testing.T) {
	w := byHand(t)
	w.pod(w.podOf("a/hand", "pod", 1000))
	w.change("a/hand", stop)
	w.now = w.now.Add(day)
	w.restart()
	w.podGone("pod")
	w.settle()
	w.expectCount("a/hand", scheduler.Expire, 1)
}

func TestAUnitIsNotEndedRightAfterAStart(t *testing.T) {
	w := byHand(t, func(u *scheduler.Unit) {
		u.Renewal = &scheduler.Renewal{Timeout: time.Minute, NotBefore: time.Unix(1_700_000_000, 0).Add(time.Hour)}
	})
	w.after(time.Hour - time.Second)
	expectReleased(t, w, "a/hand")
	w.after(time.Second)
	expectReleased(t, w, "a/waits")
}
