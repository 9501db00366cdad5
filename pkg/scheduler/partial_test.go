package scheduler_test

import (
	"testing"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// spoil makes the request of a unit unreadable.
func spoil(u *scheduler.Unit) {
	u.Partial, u.Demand, u.QuotaName = true, quota.Demand{}, "nowhere"
	u.Held = &quota.Refusal{Reason: wellknown.ReasonInvalidRequest, Sentence: "it cannot be read"}
}

func TestAUnitThatCanNoLongerBeReadKeepsWhatItHolds(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	w.submit("a/one", cpu("3"))
	w.after(time.Second)
	expectReleased(t, w, "a/one")
	w.write("a/one", spoil)
	w.write("a/one", func(u *scheduler.Unit) { u.Phase = scheduler.Running })
	w.submit("a/two", cpu("3"))
	w.after(time.Minute)
	expectReleased(t, w, "a/one")

	w.end("a/one")
	expectReleased(t, w, "a/two")
}

func TestAUnitThatBecomesUnreadableDuringItsReleaseIsNotReleased(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	w.submit("a/one", cpu("3"))
	w.hearAndThink() // the release is in progress when the unit changes
	w.write("a/one", spoil)
	w.submit("a/two", cpu("3"))
	w.after(time.Minute)
	expectReleased(t, w, "a/two")
	w.expectWrites("a/one", scheduler.Explain, wellknown.ReasonInvalidRequest)
}

func TestAnUnreadableUnitThatIsFixedIsReleased(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	w.submit("a/one", cpu("3"), spoil)
	w.after(time.Minute)
	expectReleased(t, w)
	w.change("a/one", func(u *scheduler.Unit) {
		u.Partial, u.Held, u.QuotaName, u.Demand = false, nil, "", w.demand(cpu("3"))
	})
	expectReleased(t, w, "a/one")
}
