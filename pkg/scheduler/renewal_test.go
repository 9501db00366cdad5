package scheduler_test

import (
	"testing"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

const day = 24 * time.Hour

// byHand is a quota of 4 cpu that a unit uses which was created by hand, while another unit waits.
func byHand(t *testing.T, change ...func(*scheduler.Unit)) *world {
	w := newWorld(t, scheduler.Options{Policy: queue.RoundRobin}, leaf("root", cpu("4"), "a"))
	w.list()
	w.submit("a/hand", cpu("4"), append(change, func(u *scheduler.Unit) {
		if u.Renewal == nil {
			u.Renewal = &scheduler.Renewal{Timeout: day}
		}
	})...)
	w.settle()
	w.submit("a/waits", cpu("4"))
	w.settle()
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

// The owner may not have seen that it is evicted.
func TestAnEvictedUnitThatNobodyRenewsLosesItsQuota(t *testing.T) {
	w := byHand(t)
	w.write("a/hand", deactivate)
	w.after(day)
	if len(w.writes("a/hand", scheduler.Evict)) != 1 {
		t.Fatal("it was not evicted")
	}
	expectReleased(t, w, "a/waits")
}

func TestARenewedUnitKeepsItsQuota(t *testing.T) {
	w := byHand(t)
	for range 3 {
		w.after(day - time.Hour)
		w.write("a/hand", renewed(day, w.now))
	}
	w.after(day - time.Second)
	expectReleased(t, w, "a/hand")
	w.after(time.Second)
	expectReleased(t, w, "a/waits")
}

func TestARenewalInTheFutureDoesNotCount(t *testing.T) {
	w := byHand(t)
	w.write("a/hand", renewed(day, w.now.Add(365*day)))
	w.after(day)
	expectReleased(t, w, "a/waits")
}

// The clocks of the owner and of the controller differ.
func TestARenewalCountsWhenItsTimeHasCome(t *testing.T) {
	w := byHand(t)
	w.after(time.Hour)
	w.write("a/hand", renewed(day, w.now.Add(time.Minute)))
	w.after(day)
	expectReleased(t, w, "a/hand")
	w.after(time.Minute)
	expectReleased(t, w, "a/waits")
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

func TestARestartContinuesTheTimeOfARenewal(t *testing.T) {
	w := byHand(t)
	w.after(20 * time.Hour)
	w.restart()
	w.after(4 * time.Hour)
	expectReleased(t, w, "a/waits")
}

func TestAUnitOfAJobNeedsNoRenewal(t *testing.T) {
	w := full(t)
	w.after(30 * day)
	expectReleased(t, w, "a/runs")
}
