package scheduler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

func TestAUnitThatNeverWaitedIsWrittenOnceAndOneThatWaitedTwice(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	w.submit("a/one", cpu("3"))
	w.submit("a/two", cpu("3"))
	w.settle()
	w.runs("a/one")
	w.after(10 * time.Minute)
	w.end("a/one")
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
	w.enqueue("a/running", cpu("1"))
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
		w.end(running)
		expectReleased(t, w, next)
		running = next
		w.restart() // a restart keeps it too
	}
}

func TestARefusedUnitInRoundRobinLetsThoseBehindItGoFirstMeanwhile(t *testing.T) {
	for _, c := range []struct {
		policy *queue.Policy
		want   string
	}{{queue.RoundRobin, "a/behind"}, {queue.Priority, "a/front"}} {
		w := newWorld(t, scheduler.Options{Policy: c.policy}, leaf("root", cpu("2"), "a"))
		w.enqueue("a/running", cpu("2"))
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
		w.enqueue("a/running", cpu("2"))
		w.submit("a/front", cpu("2"), priority(1))
		w.settle() // refused
		w.after(30 * time.Second)
		w.finish("a/running")
		w.submit("a/behind", cpu("1"))
		w.settle()
		expectReleased(t, w, c.want)
	}
}

// The policy is the one in docs/development/adding-a-policy.md.
func TestAPolicyThatIsAddedDecidesTheOrder(t *testing.T) {
	newestFirst := &queue.Policy{Name: "NewestFirst", Before: func(a, b *queue.Item) bool { return b.Older(a) }, FrontOnly: true}
	w := newWorld(t, scheduler.Options{Policy: newestFirst}, leaf("root", cpu("4"), "a"))
	w.enqueue("a/running", cpu("2"))
	w.submit("a/old", cpu("3"))
	w.after(time.Second)
	w.submit("a/newest", cpu("4"))
	w.after(time.Minute)
	expectReleased(t, w, "a/running")
	if found := w.writes("a/old", scheduler.Explain); len(found) == 0 || !strings.Contains(found[len(found)-1].Message, "NewestFirst") {
		t.Fatalf("want the policy in the message, got %+v", found)
	}
	w.end("a/running")
	expectReleased(t, w, "a/newest")
	w.configure(scheduler.QueueChanged{Queue: "root", Policy: queue.Priority})
	w.submit("a/newer", cpu("3"))
	w.after(time.Second)
	w.end("a/newest")
	expectReleased(t, w, "a/old")
}

func TestFreedRoomWakesOnlyShapesThatItCouldHold(t *testing.T) {
	counting := &countingBackend{}
	w := newWorld(t, roundRobin(), leaf("root", cpu("10"), "a"))
	counting.Tree = w.tree
	w.core.Apply(w.now, scheduler.QuotaChanged{Backend: counting})
	w.submit("a/one", cpu("9"))
	w.submit("a/two", cpu("1"))
	w.settle()
	for i := range 50 { // 25 shapes, each larger than what will be freed
		w.submit("a/big-"+string(rune('A'+i)), map[string]string{"cpu": "9", "memory": string(rune('1' + i%5))})
	}
	w.submit("a/fits", cpu("1"))
	w.after(time.Minute)
	before := counting.fits
	w.end("a/two")
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
	w.hearAndThink()
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
	w.hearAndThink()
	again := w.sent[0]
	w.land(0)
	w.outcomes = nil // the response is lost, so the applier writes again
	w.sent = append(w.sent, again)
	w.settle()
	expectReleased(t, w, "a/one")
	w.expectCount("a/one", scheduler.Dequeue, 1)
	if jobs := w.tree.Usage()[0].Jobs; jobs != 1 {
		t.Fatalf("%d jobs charged, want 1", jobs)
	}
}

func TestNewsFromBeforeAReleaseDoesNotUndoIt(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("3"), "a"))
	w.enqueue("a/zero", cpu("3"))
	w.enqueue("a/one", cpu("3"))
	w.now = w.now.Add(scheduler.ReasonDelay)
	w.think() // an explanation is sent; the informer reports it late
	w.land(0)
	w.answer(0)
	w.submit("a/urgent", cpu("3"), priority(9))
	w.plant(leaf("root", cpu("6"), "a"))
	w.think()
	w.land(0)
	w.answer(0)
	expectReleased(t, w, "a/one", "a/zero")
	w.deliver() // a unit before its release
	w.deliver() // urgent
	w.think()
	w.settle()
	expectReleased(t, w, "a/one", "a/zero")
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
