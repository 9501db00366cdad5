package visibility

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/pkg/forecast"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// nextEnd returns when the next unit ends, and which.
func (c *cluster) nextEnd(runs map[string]time.Duration) (key string, at time.Time) {
	for other, u := range c.units {
		if u.Phase != scheduler.Dequeued {
			continue
		}
		if ends := u.DequeuedAt.Add(runs[other]); key == "" || ends.Before(at) || ends.Equal(at) && other < key {
			key, at = other, ends
		}
	}
	return key, at
}

// play ends units after their run times, and returns when the others started.
func (c *cluster) play(runs map[string]time.Duration) map[string]time.Time {
	started := map[string]time.Time{}
	for {
		plan, wake := c.core.Next(c.now)
		for _, w := range plan {
			c.land(w)
			if w.Kind == scheduler.Dequeue {
				started[w.Key] = c.now
			}
		}
		if len(plan) > 0 {
			continue
		}
		key, at := c.nextEnd(runs)
		if key == "" {
			return started
		}
		if !wake.IsZero() && wake.Before(at) {
			c.now = wake
			continue
		}
		c.now = at
		for ; key != "" && !at.After(c.now); key, at = c.nextEnd(runs) {
			u := c.units[key]
			u.Phase = scheduler.Ended
			c.apply(u)
			delete(c.units, key)
		}
	}
}

// If the run times are right and no unit is submitted, units start when predicted.
func TestPropertyUnitsStartAsPredictedIfTheirRunTimesAreTrue(t *testing.T) {
	predictions := 0
	rapid.Check(t, func(rt *rapid.T) {
		c := newCluster(rt, trees.Draw(rt, "tree"), tree.Options{PauseBorrowing: rapid.Bool().Draw(rt, "pause")})
		for _, q := range c.core.QueueNames() {
			c.core.Apply(c.now, scheduler.QueueChanged{Queue: q, Policy: rapid.SampledFrom([]*queue.Policy{queue.Priority, queue.Block}).Draw(rt, "policy")})
		}
		runs := map[string]time.Duration{}
		for i := range rapid.IntRange(2, 25).Draw(rt, "units") {
			key := fmt.Sprintf("%s/u%d", rapid.SampledFrom(namespaces).Draw(rt, "namespace"), i)
			runs[key] = time.Duration(rapid.IntRange(120, 500).Draw(rt, "minutes")) * time.Minute
			c.submit(key, c.request("cpu", rapid.IntRange(0, 8).Draw(rt, "cpu")*1000, "nvidia.com/gpu", rapid.IntRange(0, 5).Draw(rt, "gpu")), func(u *scheduler.Unit) {
				u.Priority, u.Demand.Preemptible = int32(rapid.IntRange(0, 2).Draw(rt, "priority")), rapid.IntRange(0, 5).Draw(rt, "preemptible") > 0
				u.MaxSeconds = int32(2 * runs[key] / time.Second)
			})
		}
		half := func(_ string, d forecast.Declared, ran time.Duration) (time.Duration, bool) {
			return d.Limit/2 - ran, d.Limit > 0
		}
		predicted := c.model().Starts(half, nil)
		actual := c.play(runs)
		for key, at := range actual {
			if predicted[key].IsZero() {
				rt.Fatalf("%s started at %v, which was not predicted", key, at)
			}
			if late := predicted[key].Sub(at); late < 0 || late > afterBackoff {
				rt.Fatalf("%s started at %v, and was predicted to start at %v", key, at, predicted[key])
			}
			predictions++
		}
		for key, at := range predicted {
			if actual[key].IsZero() {
				rt.Fatalf("%s was predicted to start at %v, and has not started", key, at)
			}
		}
	})
	if predictions < 100 && !testing.Short() { // in short mode, there are fewer worlds
		t.Errorf("only %d units waited", predictions)
	}
}

func TestOnlyUnitsThatWaitForQuotaHaveAStart(t *testing.T) {
	c := newCluster(t, teams(), tree.Options{})
	hour := func(u *scheduler.Unit) { u.MaxSeconds = 3600 }
	c.submit("a/one", c.request("cpu", 8000), hour)
	c.submit("a/two", c.request("cpu", 8000), hour)
	c.submit("a/three", c.request("cpu", 8000)) // its run time is unknown
	c.submit("a/four", c.request("cpu", 8000), hour)
	c.submit("a/never", c.request("cpu", 80000), hour)
	m := c.model()
	known := func(_ string, d forecast.Declared, ran time.Duration) (time.Duration, bool) {
		return d.Limit - ran, d.Limit > 0
	}
	starts := m.Starts(known, nil)
	ends := c.units["a/one"].DequeuedAt.Add(time.Hour)
	if len(starts) != 2 || !starts["a/two"].Equal(ends) || !starts["a/three"].Equal(ends.Add(time.Hour)) {
		t.Errorf("the starts are %v, and the first unit ends at %v", starts, ends)
	}
	for _, of := range []struct {
		key      string
		position int
	}{{"a/one", 0}, {"a/two", 1}, {"a/four", 3}, {"a/never", 0}, {"a/unknown", 0}} {
		namespace, name := split(of.key)
		if w, waits := m.Waiting(namespace, name); w.Position != of.position || waits != (of.position > 0) || waits && (w.UID != of.key || w.Queue != "root-a") {
			t.Errorf("%s waits: %t: %+v", of.key, waits, w)
		}
	}
}

func TestUnitsFarBehindHaveAStartIfSomebodyAsks(t *testing.T) {
	c := newCluster(t, teams(), tree.Options{})
	for i := range firstStarts + 20 {
		c.submit(fmt.Sprintf("a/u%03d", i), c.request("cpu", 8000), func(u *scheduler.Unit) { u.MaxSeconds = 60 })
	}
	m := c.model()
	known := func(_ string, d forecast.Declared, ran time.Duration) (time.Duration, bool) {
		return d.Limit - ran, true
	}
	if starts := m.Starts(known, nil); len(starts) != firstStarts {
		t.Errorf("%d units have a start", len(starts))
	}
	if starts := m.Starts(known, map[string]int{"root-a": firstStarts + 10}); len(starts) != firstStarts+10 {
		t.Errorf("%d units have a start", len(starts))
	}
}

// A unit whose release is being written has not run yet.
func TestAUnitThatIsBeingReleasedHasRunForNoTime(t *testing.T) {
	for _, limit := range []int32{0, 3600} {
		c := newCluster(t, teams(), tree.Options{})
		past := &forecast.RunTimes{}
		for range 5 {
			past.Ended("root-a", forecast.Declared{Limit: time.Duration(limit) * time.Second}, time.Hour)
		}
		for i, key := range []string{"a/one", "a/two"} {
			c.apply(&scheduler.Unit{Key: key, Facts: scheduler.Facts{UID: key, Submitted: int64(i), MaxSeconds: limit,
				Demand: quota.Demand{Requests: c.request("cpu", 8000), Preemptible: true}}})
			c.core.Next(c.now) // nothing lands
		}
		if at := c.model().Starts(past.Left, nil)["a/two"]; !at.Equal(c.now.Add(time.Hour)) {
			t.Errorf("with limit %d, it starts at %v, want %v", limit, at, c.now.Add(time.Hour))
		}
	}
}

// The unit with the reservation takes part, even if it is far behind.
func TestNoUnitStartsAgainstAReservationOfAUnitFarBehind(t *testing.T) {
	c := newCluster(t, teams(), tree.Options{})
	c.core.Apply(c.now, scheduler.QueueChanged{Queue: "root-a", Policy: queue.ShortestFirst, ReserveAfter: time.Second})
	c.submit("a/runs", c.request("cpu", 4000), maxTime(2*time.Hour))
	c.submit("a/large", c.request("cpu", 8000), maxTime(48*time.Hour))
	c.now = c.now.Add(time.Minute)
	for i := range firstStarts + 20 {
		c.submit(fmt.Sprintf("a/u%03d", i), c.request("cpu", 4000), maxTime(4*time.Hour))
	}
	known := func(_ string, d forecast.Declared, ran time.Duration) (time.Duration, bool) {
		return d.Limit - ran, true
	}
	starts, end := c.model().Starts(known, nil), c.units["a/runs"].DequeuedAt.Add(2*time.Hour)
	for key, at := range starts {
		if at.Before(end) {
			t.Errorf("%s is predicted to start at %v, before %v", key, at, end)
		}
	}
	if !starts["a/large"].Equal(end) {
		t.Errorf("the large unit starts at %v, want %v", starts["a/large"], end)
	}
}

// Although estimates skip the checks, a unit that waits for some does not pass a reservation by its limit.
func TestNoUnitWithChecksStartsAgainstAReservation(t *testing.T) {
	c := newCluster(t, teams(), tree.Options{})
	set := scheduler.QueueChanged{Queue: "root-a", Policy: queue.Priority, ReserveAfter: time.Second}
	c.core.Apply(c.now, set)
	c.submit("a/runs", c.request("cpu", 4000), maxTime(4*time.Hour))
	c.submit("a/large", c.request("cpu", 8000), maxTime(2*time.Hour))
	c.now = c.now.Add(time.Minute)
	c.core.Apply(c.now, scheduler.CheckChanged{Name: "nodes"})
	set.Checks = scheduler.ChecksOf([]string{"nodes"})
	c.core.Apply(c.now, set)
	c.submit("a/short", c.request("cpu", 4000), maxTime(2*time.Hour))
	if at, want := c.model().Starts(halfOfLimit, nil)["a/short"], c.units["a/runs"].DequeuedAt.Add(3*time.Hour); !at.Equal(want) {
		t.Errorf("it starts at %v, want %v", at, want)
	}
}

// A remedy also admits a unit next to a reservation.
func TestRemediesRespectReservations(t *testing.T) {
	for name, of := range map[string]struct {
		root   tree.Node
		policy *queue.Policy
		submit func(c *cluster)
		want   int
	}{
		"of the same queue": {teams(), queue.Priority, func(c *cluster) {
			c.submit("a/long", c.request("cpu", 4000), maxTime(2*time.Hour))
			c.submit("a/short", c.request("cpu", 4000), maxTime(time.Hour))
			c.submit("a/large", c.request("cpu", 8000))
		}, 1},
		"although there is room": {teams(), queue.Priority, func(c *cluster) {
			c.submit("a/one", c.request("cpu", 4000))
			c.submit("a/two", c.request("cpu", 2000))
			c.submit("a/large", c.request("cpu", 6000))
		}, 2},
		"of another queue, in which many units are ahead": {tree.Node{Name: "root", Max: amounts("cpu", "10"), Children: []tree.Node{
			{Name: "a", Namespaces: []string{"a"}, Max: amounts("cpu", "2")}, {Name: "b", Namespaces: []string{"b"}}}}, queue.ShortestFirst, func(c *cluster) {
			c.submit("a/runs", c.request("cpu", 2000))
			c.submit("b/runs", c.request("cpu", 6000))
			c.submit("b/large", c.request("cpu", 10_000), maxTime(100*time.Hour))
			c.now = c.now.Add(time.Minute)
			for i := range mostOfEach + 1 {
				c.submit(fmt.Sprintf("b/short-%03d", i), c.request("cpu", 10_000), maxTime(time.Hour))
			}
		}, 1},
	} {
		for n := 0; ; n++ {
			c := newCluster(t, of.root, tree.Options{})
			for _, q := range c.core.QueueNames() {
				c.core.Apply(c.now, scheduler.QueueChanged{Queue: q, Policy: of.policy, ReserveAfter: time.Second})
			}
			of.submit(c)
			c.now = c.now.Add(time.Minute)
			c.submit("a/small", c.request("cpu", 2000))
			answer := c.why("a/small", everything())
			if len(answer.WouldAdmit) != of.want {
				t.Errorf("%s: it would be admitted by:\n%s", name, messages(answer))
			}
			if n >= len(answer.WouldAdmit) {
				break
			}
			if c.do(answer.WouldAdmit[n]); !c.runs("a/small") {
				t.Errorf("%s: it still waits after %s", name, answer.WouldAdmit[n].Message)
			}
			if answer.Until != nil {
				t.Errorf("%s: it is promised to start at %v", name, answer.Until)
			}
		}
	}
}

// An elastic unit gets all pods that fit before the next unit is tried.
func TestElasticUnitsGrowBeforeOthersStart(t *testing.T) {
	for n := 0; ; n++ {
		c := newCluster(t, teams(), tree.Options{})
		c.submit("a/runs", c.request("cpu", 8000), maxTime(2*time.Hour))
		c.submit("a/elastic", c.request("cpu", 8000), maxTime(4*time.Hour), func(u *scheduler.Unit) {
			u.Elastic = &scheduler.Elastic{PodSet: "main", Min: 2, Count: 8, Pod: resources.Vector{{ID: c.names.ID("cpu"), Value: 1000}}}
		})
		c.submit("a/small", c.request("cpu", 2000))
		starts, end := c.model().Starts(halfOfLimit, nil), c.units["a/runs"].DequeuedAt.Add(time.Hour)
		if at := starts["a/elastic"]; !at.Equal(end) {
			t.Errorf("the elastic unit starts at %v, want %v", at, end)
		}
		if at := starts["a/small"]; !at.Equal(end.Add(2 * time.Hour)) {
			t.Errorf("the small unit starts at %v, want %v", at, end.Add(2*time.Hour))
		}
		answer := c.why("a/small", everything())
		if len(answer.WouldAdmit) == 0 {
			t.Error("nothing would admit it")
		}
		if n >= len(answer.WouldAdmit) {
			return
		}
		if c.do(answer.WouldAdmit[n]); !c.runs("a/small") {
			t.Errorf("it still waits after %s", answer.WouldAdmit[n].Message)
		}
	}
}

// If it is evicted, it can start again with the pods that fit, ahead of the unit that came later.
func TestAnElasticUnitStartsAgainWithFewerPods(t *testing.T) {
	root := tree.Node{Name: "root", Max: amounts("cpu", "8"), Children: []tree.Node{
		{Name: "a", Namespaces: []string{"a"}}, {Name: "b", Namespaces: []string{"b"}, Min: amounts("cpu", "4")}}}
	c := newCluster(t, root, tree.Options{Reclaim: true})
	c.core = scheduler.New(scheduler.Options{Policy: queue.Priority, MinRunTime: 2 * time.Hour})
	c.setTree(root)
	c.core.Apply(c.now, scheduler.Listed{})
	c.submit("a/elastic", c.request("cpu", 8000), maxTime(40*time.Hour), func(u *scheduler.Unit) {
		u.Elastic = &scheduler.Elastic{PodSet: "main", Min: 2, Count: 8, Pod: resources.Vector{{ID: c.names.ID("cpu"), Value: 1000}}}
	})
	c.submit("a/late", c.request("cpu", 2000), maxTime(2*time.Hour))
	c.submit("b/owed", c.request("cpu", 4000), maxTime(4*time.Hour))
	starts, evicted := c.model().Starts(halfOfLimit, nil), c.units["a/elastic"].DequeuedAt.Add(2*time.Hour)
	if owed, late := starts["b/owed"], starts["a/late"]; !owed.Equal(evicted) || !late.Equal(evicted.Add(2*time.Hour)) {
		t.Errorf("the unit that is owed its quota starts at %v, and the last one at %v; the elastic one is evicted at %v", owed, late, evicted)
	}
}

// The large unit is refused again when the first unit ends, and the small one passes it when the second one ends.
func TestStartsUseTheBackoffOfTheController(t *testing.T) {
	root := tree.Node{Name: "root", Namespaces: []string{"a"}, Max: amounts("cpu", "8", "nvidia.com/gpu", "4")}
	c := newCluster(t, root, tree.Options{})
	c.core = scheduler.New(scheduler.Options{Policy: queue.RoundRobin, Backoff: queue.Backoff{Initial: 30 * time.Minute, Max: 2 * time.Hour}})
	c.setTree(root)
	c.core.Apply(c.now, scheduler.Listed{})
	c.submit("a/cpu", c.request("cpu", 8000), maxTime(120*time.Minute))
	c.submit("a/gpu", c.request("nvidia.com/gpu", 4), maxTime(180*time.Minute))
	c.submit("a/large", c.request("cpu", 8000, "nvidia.com/gpu", 4), maxTime(120*time.Minute))
	c.submit("a/small", c.request("nvidia.com/gpu", 1), maxTime(120*time.Minute))
	if at, want := c.model().Starts(halfOfLimit, nil)["a/small"], c.units["a/gpu"].DequeuedAt.Add(90*time.Minute); !at.Equal(want) {
		t.Errorf("the small unit starts at %v, want %v", at, want)
	}
}

// Growth is as old as its job, but no quota is reserved for it.
func TestNoUnitIsDelayedByAReservationForGrowth(t *testing.T) {
	c := newCluster(t, teams(), tree.Options{})
	c.core.Apply(c.now, scheduler.QueueChanged{Queue: "root-a", Policy: queue.Priority, ReserveAfter: time.Second})
	c.submit("a/one", c.request("cpu", 4000), maxTime(2*time.Hour))
	c.submit("a/two", c.request("cpu", 4000), maxTime(4*time.Hour))
	c.submit("a/grown", c.request("cpu", 8000), maxTime(48*time.Hour), func(u *scheduler.Unit) { u.Growth = true })
	c.submit("a/late", c.request("cpu", 2000), maxTime(20*time.Hour))
	if at, want := c.model().Starts(halfOfLimit, nil)["a/late"], c.units["a/one"].DequeuedAt.Add(time.Hour); !at.Equal(want) {
		t.Errorf("it starts at %v, want %v", at, want)
	}
}
