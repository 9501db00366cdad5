package scheduler_test

import (
	"fmt"
	"runtime"
	"testing"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// BenchmarkRelease measures one release: a unit ends and is deleted, another gets its room and its write is confirmed,
// and a new unit arrives.
func BenchmarkRelease(b *testing.B) {
	for _, of := range []crowdOf{
		{100_000, 1000, 100, eachLeaf, queue.Priority},
		{100_000, 1000, 100, eachLeaf, queue.RoundRobin},
		{100_000, 1000, 100, eachLeaf, queue.Block},
		{100_000, 1000, 100, eachLeaf, queue.ShortestFirst},
		{100_000, 1, 1, eachLeaf, queue.Priority},
		{100_000, 1, 100, eachLeaf, queue.Priority},
		{100_000, 1, 100_000, eachLeaf, queue.Priority},
		{100_000, 1, 100_000, eachLeaf, queue.RoundRobin},
		{100_000, 10, 100, theRoot, queue.Priority},
		{100_000, 100, 100, theRoot, queue.Priority},
		{100_000, 100, 100, theRoot, queue.ShortestFirst},
		{100_000, 1000, 100, theRoot, queue.Priority},
		{1_000_000, 1000, 1, eachLeaf, queue.Priority},
		{1_000_000, 1000, 100, eachLeaf, queue.Priority},
		{1_000_000, 1000, 1_000_000, eachLeaf, queue.Priority},
	} {
		b.Run(of.String(), func(b *testing.B) {
			newCrowd(b, of).benchmarkReleases(b)
		})
	}
}

// benchmarkReleases fills the crowd and then replaces units.
func (c *crowd) benchmarkReleases(b *testing.B) {
	c.fill(b)
	runtime.GC()
	b.ReportAllocs()
	for b.Loop() {
		c.replaceOne(b)
		c.core.Apply(c.now, scheduler.UnitChanged{Unit: c.unit()})
	}
}

// BenchmarkAdmit measures 100,000 units that arrive and get room at once, each with one write.
func BenchmarkAdmit(b *testing.B) {
	for _, of := range []crowdOf{
		{100_000, 1, 100, nothing, queue.Priority},
		{100_000, 1000, 100, nothing, queue.Priority},
	} {
		b.Run(of.String(), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				c := newCrowd(b, of)
				units := make([]scheduler.Unit, of.waiting)
				for i := range units {
					units[i] = c.unit()
				}
				runtime.GC()
				b.StartTimer()
				for i := range units {
					c.core.Apply(c.now, scheduler.UnitChanged{Unit: units[i]})
				}
				if plan, _ := c.core.Next(c.now); len(plan) != of.waiting {
					b.Fatalf("%d units were released", len(plan))
				}
			}
		})
	}
}

// BenchmarkPass measures a change of the tree while units wait: all charges are repeated, and every shape is tried.
func BenchmarkPass(b *testing.B) {
	for _, of := range []crowdOf{
		{100_000, 1000, 1, eachLeaf, queue.Priority},
		{100_000, 1000, 100, eachLeaf, queue.Priority},
		{100_000, 1, 100_000, eachLeaf, queue.Priority},
		{1_000_000, 1000, 100, eachLeaf, queue.Priority},
	} {
		b.Run(of.String(), func(b *testing.B) {
			c := newCrowd(b, of)
			c.fill(b)
			runtime.GC()
			for b.Loop() {
				c.plant(b)
				if released := c.turn(); released != 0 {
					b.Fatalf("%d units were released without room", released)
				}
			}
		})
	}
}

// BenchmarkMemory reports the memory of each waiting unit, including its strings.
func BenchmarkMemory(b *testing.B) {
	for _, of := range []crowdOf{
		{100_000, 1000, 1, eachLeaf, queue.Priority},
		{100_000, 1000, 100, eachLeaf, queue.Priority},
		{1_000_000, 1000, 100, eachLeaf, queue.Priority},
		{100_000, 1, 100_000, eachLeaf, queue.Priority},
	} {
		b.Run(of.String(), func(b *testing.B) {
			for b.Loop() {
				before := heapInUse()
				c := newCrowd(b, of)
				c.fill(b)
				b.ReportMetric(float64(heapInUse()-before)/float64(c.made), "B/unit")
				runtime.KeepAlive(c)
			}
		})
	}
}

func heapInUse() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// BenchmarkForget measures Forget with nothing to forget, among 100,000 units.
func BenchmarkForget(b *testing.B) {
	of := crowdOf{100_000, 1000, 100, eachLeaf, queue.Priority}
	c := newCrowd(b, of)
	c.fill(b)
	runtime.GC()
	b.ReportAllocs()
	for b.Loop() {
		used, known := c.core.Uses()
		if !known {
			b.Fatal("the core does not know what it uses")
		}
		c.core.Forget(used)
	}
}

// BenchmarkGrow measures one round in which each queue admits an elastic unit with as many pods as fit.
func BenchmarkGrow(b *testing.B) {
	for _, guaranteed := range []bool{true, false} {
		b.Run(fmt.Sprintf("1000 queues, guaranteed %t", guaranteed), func(b *testing.B) {
			of := crowdOf{0, 1000, 1, nothing, queue.RoundRobin}
			for b.Loop() {
				b.StopTimer()
				c := newCrowd(b, of)
				c.guaranteed = guaranteed
				c.plant(b)
				for range of.leaves {
					u := c.unit()
					pod := u.Demand.Requests
					u.Demand.Requests = pod.Plus(pod).Plus(pod).Plus(pod).With(c.names.ID(quota.JobsResource), 1)
					u.Elastic = &scheduler.Elastic{PodSet: "worker", Min: 1, Count: 4, Pod: pod}
					c.core.Apply(c.now, scheduler.UnitChanged{Unit: u})
				}
				b.StartTimer()
				if plan, _ := c.core.Next(c.now); len(plan) != of.leaves {
					b.Fatalf("%d units were admitted", len(plan))
				}
			}
		})
	}
}

// BenchmarkSettings measures a change of an admission check that 300 queues share, and of one queue, among 20,000
// units.
func BenchmarkSettings(b *testing.B) {
	of := crowdOf{20_000, 300, 100, eachLeaf, queue.Priority}
	run := func(name string, event func(i int) scheduler.Event) {
		b.Run(name, func(b *testing.B) {
			c := newCrowd(b, of)
			c.fill(b)
			for _, l := range c.core.View(c.now, c.names).Queues {
				c.core.Apply(c.now, scheduler.QueueChanged{Queue: l.Name, Checks: "budget"})
			}
			for i := 0; b.Loop(); i++ {
				c.core.Apply(c.now, event(i))
			}
		})
	}
	run("check", func(i int) scheduler.Event {
		if i%2 == 0 {
			return scheduler.CheckChanged{Name: "budget"}
		}
		return scheduler.CheckGone{Name: "budget"}
	})
	run("queue", func(i int) scheduler.Event {
		return scheduler.QueueChanged{Queue: "root-0", Checks: "budget", Rank: int32(i + 1)}
	})
}
