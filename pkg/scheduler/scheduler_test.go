package scheduler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/pods"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

func TestTheSecondUnitIsReleasedWhenTheFirstHasEnded(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	w.submit("a/one", cpu("3"))
	w.submit("a/two", cpu("3"))
	w.after(10 * time.Second)
	expectReleased(t, w, "a/one")

	w.finish("a/one")
	w.settle()
	expectReleased(t, w, "a/two")
}

func TestAUnitThatNeverWaitedIsWrittenOnceAndOneThatWaitedTwice(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	w.submit("a/one", cpu("3"))
	w.submit("a/two", cpu("3"))
	w.settle()
	w.runs("a/one")
	w.after(10 * time.Minute)
	w.finish("a/one")
	w.settle()
	w.runs("a/two")
	w.after(time.Minute)
	w.finish("a/two")
	w.after(time.Minute)
	if n := len(w.landed); n != 3 {
		t.Fatalf("%d writes, want Dequeue for one, Explain and Dequeue for two: %+v", n, w.landed)
	}
}

func TestOrderIsPriorityThenSubmissionThenName(t *testing.T) {
	w := newWorld(t, scheduler.Options{Policy: queue.Priority}, leaf("root", cpu("1"), "a"))
	w.submit("a/running", cpu("1"))
	w.settle()
	early, late := w.now.UnixMicro(), w.now.Add(time.Second).UnixMicro()
	at := func(micro int64) func(*scheduler.Unit) {
		return func(u *scheduler.Unit) { u.Submitted = micro }
	}
	w.submit("a/4-low", cpu("1"), at(early))
	w.submit("a/3-high-late", cpu("1"), priority(5), at(late))
	w.submit("a/2-high-b", cpu("1"), priority(5), at(early))
	w.submit("a/1-high-a", cpu("1"), priority(5), at(early))
	w.after(time.Minute)
	w.write("a/4-low", func(*scheduler.Unit) {}) // an update keeps the place
	running := "a/running"
	for _, next := range []string{"a/1-high-a", "a/2-high-b", "a/3-high-late", "a/4-low"} {
		w.finish(running)
		w.settle()
		expectReleased(t, w, next)
		running = next
		w.restart() // and so does a restart
	}
}

func TestARefusedUnitInRoundRobinLetsThoseBehindItGoFirstMeanwhile(t *testing.T) {
	for _, c := range []struct {
		policy *queue.Policy
		want   string
	}{{queue.RoundRobin, "a/behind"}, {queue.Priority, "a/front"}} {
		w := newWorld(t, scheduler.Options{Policy: c.policy}, leaf("root", cpu("2"), "a"))
		w.submit("a/running", cpu("2"))
		w.settle()
		w.submit("a/front", cpu("2"), priority(1))
		w.settle() // refused: backs off for a second
		w.finish("a/running")
		w.submit("a/behind", cpu("1"))
		w.settle()
		expectReleased(t, w, c.want)
	}
}

func TestBackoffLastsAsLongAsWasSetUnderEachTree(t *testing.T) {
	for _, c := range []struct {
		backoff queue.Backoff
		want    string
	}{{queue.Backoff{}, "a/front"}, {queue.Backoff{Initial: time.Minute, Max: time.Minute}, "a/behind"}} {
		w := newWorld(t, scheduler.Options{Policy: queue.RoundRobin, Backoff: c.backoff}, leaf("root", cpu("1"), "a"))
		w.plant(leaf("root", cpu("2"), "a"))
		w.submit("a/running", cpu("2"))
		w.settle()
		w.submit("a/front", cpu("2"), priority(1))
		w.settle() // refused
		w.after(30 * time.Second)
		w.finish("a/running")
		w.submit("a/behind", cpu("1"))
		w.settle()
		expectReleased(t, w, c.want)
	}
}

func TestRoomThatNobodyElseCanUseGoesToAUnitInBackoffAtOnce(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("2"), "a"))
	w.submit("a/running", cpu("2"))
	w.submit("a/waiting", cpu("2"))
	w.settle()
	w.finish("a/running")
	w.settle() // no time has passed
	expectReleased(t, w, "a/waiting")
}

// The policy is that of docs/development/adding-a-policy.md.
func TestAPolicyThatIsAddedDecidesTheOrder(t *testing.T) {
	oldestFirst := &queue.Policy{Name: "OldestFirst", Before: (*queue.Item).Older, FrontOnly: true}
	w := newWorld(t, scheduler.Options{Policy: oldestFirst}, leaf("root", cpu("4"), "a"))
	w.submit("a/running", cpu("2"))
	w.settle()
	w.submit("a/oldest", cpu("4"))
	w.after(time.Second)
	w.submit("a/greater-priority", cpu("1"), priority(9))
	w.after(time.Minute)
	expectReleased(t, w, "a/running")
	if found := w.writes("a/greater-priority", scheduler.Explain); len(found) != 1 || !strings.Contains(found[0].Message, "OldestFirst") {
		t.Fatalf("want the policy in the message, got %+v", found)
	}
	w.finish("a/running")
	w.settle()
	expectReleased(t, w, "a/oldest")
	w.configure(scheduler.QueueChanged{Queue: "root", Policy: queue.Priority})
	w.submit("a/older", cpu("4"))
	w.after(time.Second)
	w.finish("a/oldest")
	w.settle()
	expectReleased(t, w, "a/greater-priority")
}

func TestInBlockNothingPassesTheFrontAndDeletingItUnblocks(t *testing.T) {
	w := newWorld(t, scheduler.Options{Policy: queue.Block}, leaf("root", cpu("4"), "a"))
	w.submit("a/running", cpu("2"))
	w.settle()
	w.submit("a/front", cpu("4"), priority(1))
	w.submit("a/small", cpu("1"))
	w.after(time.Minute)
	expectReleased(t, w, "a/running")
	if found := w.writes("a/small", scheduler.Explain); len(found) != 1 || found[0].Reason != wellknown.ReasonNotAtFront {
		t.Fatalf("want NotAtFront, got %+v", found)
	}
	w.delete("a/front")
	w.settle()
	expectReleased(t, w, "a/running", "a/small")
}

func TestFreedRoomWakesOnlyShapesThatItCouldHold(t *testing.T) {
	counting := &countingBackend{}
	w := newWorld(t, roundRobin(), leaf("root", cpu("10"), "a"))
	counting.Tree = w.tree
	w.core.Apply(w.now, scheduler.QuotaChanged{Backend: counting})
	w.submit("a/one", cpu("9"))
	w.submit("a/two", cpu("1"))
	w.settle()
	for i := range 50 { // 25 shapes, each larger than what is going to be freed
		w.submit("a/big-"+string(rune('A'+i)), map[string]string{"cpu": "9", "memory": string(rune('1' + i%5))})
	}
	w.submit("a/fits", cpu("1"))
	w.after(time.Minute)
	before := counting.fits
	w.finish("a/two")
	w.settle()
	expectReleased(t, w, "a/fits", "a/one")
	if tried := counting.fits - before; tried > 2 {
		t.Fatalf("%d shapes were tried for room that one could use", tried)
	}
}

type countingBackend struct {
	*tree.Tree
	fits int
}

type countingGroup struct {
	quota.Group
	backend *countingBackend
}

func (b *countingBackend) wrap(g quota.Group) quota.Group { return countingGroup{g, b} }

func (b *countingBackend) Groups() []quota.Group {
	var groups []quota.Group
	for _, g := range b.Tree.Groups() {
		groups = append(groups, b.wrap(g))
	}
	return groups
}

func (b *countingBackend) Place(namespace, name string) (quota.Group, *quota.Refusal) {
	g, r := b.Tree.Place(namespace, name)
	if r != nil {
		return nil, r
	}
	return b.wrap(g), nil
}

func (g countingGroup) Fits(d quota.Demand) *quota.Refusal {
	g.backend.fits++
	return g.Group.Fits(d)
}

func TestAWriteThatCameTooLateIsDecidedAgain(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	w.submit("a/one", cpu("3"))
	w.deliver()
	w.think()
	d := w.demand(cpu("5"))
	w.write("a/one", func(u *scheduler.Unit) { u.Demand = d }) // before the write lands
	w.land(0)
	w.after(time.Minute)
	expectReleased(t, w)
	if used := w.tree.Usage()[0].Used; len(used) != 0 {
		t.Fatalf("the refused release left %v charged", used)
	}
}

func TestAReleaseWhoseAnswerWasLostIsNotDoneTwice(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	w.submit("a/one", cpu("3"))
	w.deliver()
	w.think()
	again := w.sent[0]
	w.land(0)
	w.outcomes = nil // the answer is lost, so the applier writes once more
	w.sent = append(w.sent, again)
	w.settle()
	expectReleased(t, w, "a/one")
	if n := len(w.writes("a/one", scheduler.Dequeue)); n != 1 {
		t.Fatalf("released %d times", n)
	}
	if jobs := w.tree.Usage()[0].Jobs; jobs != 1 {
		t.Fatalf("%d jobs charged, want 1", jobs)
	}
}

func TestNewsFromBeforeAReleaseDoesNotUndoIt(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("3"), "a"))
	w.submit("a/zero", cpu("3"))
	w.settle()
	w.submit("a/one", cpu("3"))
	w.settle()
	w.now = w.now.Add(scheduler.ReasonDelay)
	w.think() // one is reported why it waits; the informer is slow to say so
	w.land(0)
	w.answer(0)
	w.submit("a/urgent", cpu("3"), priority(9))
	w.plant(leaf("root", cpu("6"), "a"))
	w.think()
	w.land(0)
	w.answer(0)
	expectReleased(t, w, "a/one", "a/zero")
	w.deliver() // one as it was before its release
	w.deliver() // urgent
	w.think()
	w.settle()
	expectReleased(t, w, "a/one", "a/zero")
}

func TestARestartChargesWhatHoldsQuotaThoughItNoLongerFits(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	w.submit("a/one", cpu("3"))
	w.settle()
	w.exact = false
	w.root = leaf("root", cpu("3"), "a")
	w.restart()
	w.submit("a/two", cpu("1"))
	w.after(time.Minute)
	expectReleased(t, w, "a/one")
	w.finish("a/one")
	w.settle()
	expectReleased(t, w, "a/two")
}

func TestAUnitSuspendedByHandGivesItsQuotaBackAndStaysOut(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	w.submit("a/one", cpu("3"))
	w.submit("a/two", cpu("3"))
	w.settle()
	w.write("a/one", func(u *scheduler.Unit) {
		u.Stopped, u.Held = true, &quota.Refusal{Reason: wellknown.ReasonSuspendedByUser, Sentence: "by hand"}
	})
	w.settle()
	expectReleased(t, w, "a/two")
	if found := w.writes("a/one", scheduler.Requeue); len(found) != 1 || found[0].Reason != wellknown.ReasonSuspendedByUser {
		t.Fatalf("want one Requeue with reason SuspendedByUser, got %+v", found)
	}
	w.finish("a/two")
	w.after(time.Minute)
	expectReleased(t, w)
	w.write("a/one", func(u *scheduler.Unit) { u.Held = nil })
	w.settle()
	expectReleased(t, w, "a/one")
	if got := w.units["a/one"].Attempts; got != 2 {
		t.Fatalf("attempts is %d, want 2", got)
	}
}

func TestUnitsWithoutQuotaSaySoAndAreReleasedWhenATreeComes(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "elsewhere"))
	w.submit("a/one", cpu("3"))
	w.after(time.Minute)
	found := w.writes("a/one", scheduler.Explain)
	if len(found) != 1 || found[0].Reason != wellknown.ReasonNoQuota {
		t.Fatalf("want NoQuota, got %+v", found)
	}
	w.plant(leaf("root", cpu("4"), "a"))
	w.settle()
	expectReleased(t, w, "a/one")
}

func TestTheSameEventsGiveTheSamePlans(t *testing.T) {
	run := func() []scheduler.Write {
		w := newWorld(t, roundRobin(), leaf("root", cpu("7"), "a", "b", "c"))
		for i := range 40 {
			w.submit([]string{"a/", "b/", "c/"}[i%3]+string(rune('A'+i)), cpu([]string{"1", "2", "3", "5"}[i%4]), priority(int32(i%2)))
		}
		for range 60 {
			w.after(time.Second)
			if released := w.released(); len(released) > 0 {
				w.finish(released[0])
			}
		}
		return w.landed
	}
	if a, b := run(), run(); !slices.Equal(a, b) {
		t.Fatal("two runs differ")
	}
}

// Found by TestPropertyChargedIsUsed: the outcome of a write that only reports why
// brought a greater request than the one that had been found to fit meanwhile.
func TestARequestThatGrowsWhileItsReleaseWaitsToBeSentIsDecidedAgain(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("2"), "a"))
	w.submit("a/one", cpu("3"))
	w.deliver()
	w.think() // reported at once that it can never fit
	small, large := w.demand(cpu("1")), w.demand(cpu("3"))
	w.write("a/one", func(u *scheduler.Unit) { u.Demand = small })
	w.write("a/one", func(u *scheduler.Unit) { u.Demand = large })
	w.deliver() // small
	w.land(0)   // refused: brings large
	w.think()   // small is released, once the outcome is in
	w.answer(0)
	w.settle()
	expectReleased(t, w)
}

func TestALoweredRequestOfARunningUnitFreesItsQuotaAtOnce(t *testing.T) {
	for _, phase := range []scheduler.Phase{scheduler.Dequeued, scheduler.Running} {
		w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
		w.submit("a/one", cpu("4"))
		w.after(time.Second)
		w.submit("a/two", cpu("3"))
		w.after(time.Second)
		expectReleased(t, w, "a/one")

		small := w.demand(cpu("1"))
		w.write("a/one", func(u *scheduler.Unit) { u.Phase, u.Demand = phase, small })
		w.settle()
		expectReleased(t, w, "a/one", "a/two")
	}
}

// The pods of a job whose request was lowered are charged until they are gone, and those that
// it creates later too.
func TestPodsAreChargedWhateverIsLeftOfTheRequest(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	w.submit("a/one", cpu("4"))
	w.after(time.Second)
	pod := func(uid string) {
		w.pod(pods.Pod{Namespace: "a", UID: uid, Owner: w.units["a/one"].Owner, Requests: resources.Vector{}.With(w.names.ID("cpu"), 1000)})
	}
	for _, uid := range []string{"p1", "p2", "p3", "p4"} {
		pod(uid)
	}
	w.submit("a/two", cpu("3"))
	w.after(time.Second)
	small := w.demand(cpu("1"))
	w.write("a/one", func(u *scheduler.Unit) { u.Phase, u.Demand = scheduler.Running, small })
	w.after(time.Minute)
	expectReleased(t, w, "a/one")

	for _, uid := range []string{"p1", "p2", "p3"} {
		w.podGone(uid)
	}
	w.settle()
	expectReleased(t, w, "a/one", "a/two")

	w.finish("a/two")
	pod("p5")
	pod("p6")
	w.submit("a/three", cpu("2"))
	w.after(time.Minute)
	expectReleased(t, w, "a/one")
}
