package scheduler_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/test/require"
)

// crowd is a core with so many waiting units that the cost per event matters. Time does not pass, so no reasons are
// reported.
type crowd struct {
	crowdOf
	now     time.Time
	names   *resources.Names
	core    *scheduler.Scheduler
	backend *countingBackend
	demands []quota.Demand
	version uint64
	// made is the number of units so far; running are those released, the oldest first.
	made    int
	running []scheduler.Unit
	// guaranteed: each leaf has a guarantee of what its units request.
	guaranteed bool
}

// crowdOf is how many units wait, in how many groups, and with how many shapes.
type crowdOf struct {
	waiting, leaves, shapes int
	// full is what only has room for the running units: each leaf, the root, or nothing.
	full   string
	policy *queue.Policy
}

// The values of crowdOf.full.
const (
	eachLeaf = "leaf"
	theRoot  = "root"
	nothing  = "nothing"
)

// runningPerLeaf is how many units of each leaf have room where it is full.
const runningPerLeaf = 4

func (c crowdOf) String() string {
	return fmt.Sprintf("waiting=%d/leaves=%d/shapes=%d/full=%s/%s", c.waiting, c.leaves, c.shapes, c.full, c.policy)
}

func newCrowd(t testing.TB, of crowdOf) *crowd {
	t.Helper()
	c := &crowd{crowdOf: of, now: time.Unix(1_700_000_000, 0), names: resources.NewNames()}
	for shape := range of.shapes {
		requests, err := resources.Request(c.names, map[string]resource.Quantity{
			"cpu": *resource.NewMilliQuantity(int64(1000+shape), resource.DecimalSI), quota.JobsResource: resource.MustParse("1")})
		require.NoError(t, err)
		c.demands = append(c.demands, quota.Demand{Requests: requests, Preemptible: true})
	}
	c.core = scheduler.New(scheduler.Options{Policy: of.policy})
	c.plant(t)
	return c
}

// plant puts a tree in force that has room for the running units.
func (c *crowd) plant(t testing.TB) {
	t.Helper()
	jobs := func(n int) map[string]resource.Quantity {
		return map[string]resource.Quantity{quota.JobsResource: *resource.NewQuantity(int64(n), resource.DecimalSI)}
	}
	root := tree.Node{Name: "root"}
	if c.full == theRoot {
		root.Max = jobs(runningPerLeaf * c.leaves)
	}
	for leaf := range c.leaves {
		node := tree.Node{Name: strconv.Itoa(leaf), Namespaces: []string{namespaceOf(leaf)}}
		if c.full == eachLeaf {
			node.Max = jobs(runningPerLeaf)
		}
		if c.guaranteed {
			node.Min = map[string]resource.Quantity{"cpu": resource.MustParse("4")}
		}
		root.Children = append(root.Children, node)
	}
	planted, _, err := tree.New(c.names, root, tree.Options{})
	require.NoError(t, err)
	c.backend = &countingBackend{Tree: planted}
	c.core.Apply(c.now, scheduler.QuotaChanged{Backend: planted})
}

func namespaceOf(leaf int) string { return "team-" + strconv.Itoa(leaf) }

// unit makes another unit, with names as long as in real clusters. Leaves and shapes get units in turn.
func (c *crowd) unit() scheduler.Unit {
	c.version++
	i := c.made
	c.made++
	return scheduler.Unit{
		Key: fmt.Sprintf("%s/tfjob-training-%07d-0a1b2c3d", namespaceOf(i%c.leaves), i),
		Facts: scheduler.Facts{
			UID:     fmt.Sprintf("4b1a7d8e-7a3b-4b7e-9a51-%012d", i),
			Version: c.version, Priority: int32(i % 3), Submitted: c.now.UnixMicro() + int64(i),
			Demand: quota.Demand{Requests: append(resources.Vector(nil), c.demands[i/c.leaves%c.shapes].Requests...), Preemptible: true},
		},
	}
}

// fill submits all units, and releases as many as there is room for.
func (c *crowd) fill(t testing.TB) {
	t.Helper()
	for range c.leaves*runningPerLeaf + c.waiting {
		c.core.Apply(c.now, scheduler.UnitChanged{Unit: c.unit()})
	}
	if released := c.turn(); released != c.leaves*runningPerLeaf {
		t.Fatalf("%d units were released, want %d", released, c.leaves*runningPerLeaf)
	}
}

// turn lets the core decide, and confirms its releases.
func (c *crowd) turn() (released int) {
	plan, _ := c.core.Next(c.now)
	for i := range plan {
		w := &plan[i]
		c.version++
		c.core.Apply(c.now, scheduler.Written{Write: w, Version: c.version, At: c.now})
		c.running = append(c.running, scheduler.Unit{Key: w.Key, Facts: scheduler.Facts{UID: w.UID, Version: c.version}})
	}
	return len(plan)
}

// endOne ends and deletes the unit that was released first.
func (c *crowd) endOne() {
	u := c.running[0]
	c.running = c.running[1:]
	c.version++
	u.Version, u.Phase = c.version, scheduler.Ended
	c.core.Apply(c.now, scheduler.UnitChanged{Unit: u})
	c.core.Apply(c.now, scheduler.UnitGone{Key: u.Key, UID: u.UID})
}

// replaceOne ends a unit, and expects exactly one other unit to get its room.
func (c *crowd) replaceOne(t testing.TB) {
	c.endOne()
	if released := c.turn(); released != 1 {
		t.Fatalf("%d units were released in place of one", released)
	}
}

// No matter how many units and shapes wait, the end of a unit causes one try for each unit that gets room, and one that
// finds no room left.
func TestTheEndOfAUnitCostsTheSameHoweverManyWait(t *testing.T) {
	for _, policy := range []*queue.Policy{queue.Priority, queue.RoundRobin, queue.Block} {
		for _, of := range []crowdOf{
			{waiting: 100, leaves: 10, shapes: 1, full: eachLeaf},
			{waiting: 100, leaves: 1, shapes: 100, full: eachLeaf},
			{waiting: 20_000, leaves: 10, shapes: 1, full: eachLeaf},
			{waiting: 20_000, leaves: 10, shapes: 2000, full: eachLeaf},
			{waiting: 20_000, leaves: 1, shapes: 20_000, full: eachLeaf},
		} {
			of.policy = policy
			t.Run(of.String(), func(t *testing.T) {
				c := newCrowd(t, of)
				c.core.Apply(c.now, scheduler.QuotaChanged{Backend: c.backend})
				c.fill(t)
				for range 50 {
					before := c.backend.fits
					c.replaceOne(t)
					if requested := c.backend.fits - before; requested > 2 {
						t.Fatalf("%d shapes were tried for the room of one", requested)
					}
				}
			})
		}
	}
}

// Many queues may wait for the same full ancestor: one shape of each queue is tried, not all.
func TestRoomThatManyLinesWaitForHasOneShapeOfEachTried(t *testing.T) {
	c := newCrowd(t, crowdOf{waiting: 20_000, leaves: 20, shapes: 1000, full: theRoot, policy: queue.Priority})
	c.core.Apply(c.now, scheduler.QuotaChanged{Backend: c.backend})
	c.fill(t)
	before := c.backend.fits
	c.replaceOne(t)
	if requested := c.backend.fits - before; requested > 2*c.leaves {
		t.Errorf("%d shapes were tried in %d queues", requested, c.leaves)
	}
}
