package loadgen

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/test/perf/pace"
	"kube-queue.dev/kube-queue/test/perf/scenario"
)

// heldPerLeaf is the number of units that hold quota at a time, per leaf.
const heldPerLeaf = 2

// TurnoverScenario returns a scenario with a tree of so many nodes, at least 3, and at least so many units. All units
// arrive at once. Parents are full, and leaves borrow from each other.
func TurnoverScenario(name string, nodes, units int) *scenario.Scenario {
	parents := 1
	for p := 2; p*p <= nodes-1; p++ {
		if (nodes-1)%p == 0 {
			parents = p
		}
	}
	leaves := (nodes-1)/parents - 1
	s := Uniform(name, parents*leaves, units)
	s.Parents = scenario.Group{Count: parents, Max: cpu(heldPerLeaf * leaves)}
	s.Leaves = scenario.Group{Count: leaves, Min: cpu(1), Max: cpu(2 * heldPerLeaf)}
	return s
}

// Uniform returns a scenario without limits of quota. At least so many equal units arrive at once, as many in each leaf.
func Uniform(name string, leaves, units int) *scenario.Scenario {
	return &scenario.Scenario{
		Name: name, Policy: "Priority",
		Parents: scenario.Group{Count: 1}, Leaves: scenario.Group{Count: leaves},
		Classes: []scenario.Class{{Name: name, Count: (units + leaves - 1) / leaves, Shapes: 1, Requests: cpu(1)}},
	}
}

func cpu(count int) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(count), resource.DecimalSI)}
}

// Held returns how many units of a turnover hold quota at a time.
func (r *Run) Held() int { return heldPerLeaf * r.LeafCount() }

// Last returns the last unit of a leaf, and its job. Leaves are numbered from 0.
func (r *Run) Last(leaf int) (namespace, unit, job string) {
	id := r.identityOf(len(r.units) - r.LeafCount() + leaf)
	return id.namespace, id.unit, id.job
}

// Pace is how fast units end.
type Pace struct {
	// During is how long units end.
	During time.Duration
	// Rate is the number of ends a second. If it is 0, units end as fast as possible, at most Most of them.
	Rate float64
	Most int
}

// TurnOver ends units that hold quota, in the order of their release. It returns how many were released meanwhile.
func (r *Run) TurnOver(ctx context.Context, p Pace) (released int, took time.Duration, err error) {
	window, cancel := context.WithTimeout(ctx, p.During)
	defer cancel()
	before, from := r.Counts(), r.Elapsed()
	count := p.Most
	if p.Rate > 0 {
		count = int(p.Rate * p.During.Seconds())
	}
	err = pace.InTime(window, time.Now(), endsInFlight, count, pace.Rate(p.Rate), func(context.Context, int) error {
		select {
		case <-window.Done():
			return nil
		case index := <-r.due:
			return r.End(ctx, index) // beyond the window, so that none is lost
		}
	})
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return 0, 0, err
	}
	if p.Rate > 0 {
		<-window.Done()
	} else {
		// The window is over at the latest then.
		_ = r.Reach(window, "the quota is used again", func(c Counts) bool { return c.Released >= r.Held()+c.Ended })
	}
	return r.Counts().Released - before.Released, r.Elapsed() - from, context.Cause(ctx)
}
