package loadgen

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/test/perf/pace"
	"kube-queue.dev/kube-queue/test/perf/report"
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
	perLeaf := (units + parents*leaves - 1) / (parents * leaves)
	return &scenario.Scenario{
		Name: name, Kind: scenario.Stream, Policy: "Priority",
		Parents: scenario.Group{Count: parents, Max: cpu(heldPerLeaf * leaves)},
		Leaves:  scenario.Group{Count: leaves, Min: cpu(1), Max: cpu(2 * heldPerLeaf)},
		Classes: []scenario.Class{{Name: name, Count: perLeaf, Shapes: 1, Requests: cpu(1)}},
	}
}

func cpu(count int) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(count), resource.DecimalSI)}
}

// Held returns how many units of a turnover hold quota at a time.
func (s *Run) Held() int { return heldPerLeaf * s.scenario.LeafCount() }

// Units returns the number of units.
func (s *Run) Units() int { return len(s.units) }

// Last returns the last unit of a leaf, and its job. Leaves are numbered from 0.
func (s *Run) Last(leaf int) (namespace, unit, job string) {
	id := s.identityOf(len(s.units) - s.scenario.LeafCount() + leaf)
	return id.namespace, id.unit, id.job
}

// PlayTurnover is like Play. Units end only by TurnOver.
func (s *Run) PlayTurnover(ctx context.Context, act func(context.Context) error) error {
	s.turnover = true
	return s.Play(ctx, act)
}

// UntilCreated waits until all units are created.
func (s *Run) UntilCreated(ctx context.Context) error {
	return s.reach(ctx, "all are created", func(c Counts) bool { return c.Created == len(s.units) })
}

// UntilFull waits until as many units are released as may hold quota, which begins now.
func (s *Run) UntilFull(ctx context.Context) error {
	s.moved = s.Elapsed()
	return s.reach(ctx, "the quota is used", func(c Counts) bool { return c.Released >= s.Held() })
}

// Pace is how fast units end.
type Pace struct {
	// During is how long units end.
	During time.Duration
	// Rate is the number of ends a second. If it is 0, units end as fast as possible, at most Most of them.
	Rate float64
	Most int
}

// Window is what happened during a time. From and To are relative to the start of the run.
type Window struct {
	From, To        time.Duration
	Ended, Released int
}

// TurnOver ends units that hold quota, in the order of their release.
func (s *Run) TurnOver(ctx context.Context, p Pace) (Window, error) {
	window, cancel := context.WithTimeout(ctx, p.During)
	defer cancel()
	before, from := s.Counts(), s.Elapsed()
	count, at := p.Most, func(int) time.Duration { return 0 }
	if p.Rate > 0 {
		count = int(p.Rate * p.During.Seconds())
		at = func(index int) time.Duration { return time.Duration(float64(index) / p.Rate * float64(time.Second)) }
	}
	err := pace.InTime(window, time.Now(), count, at, endsInFlight, func(_ context.Context, _ int) error {
		select {
		case <-window.Done():
			return nil
		case index := <-s.due:
			return s.end(ctx, index) // beyond the window, so that none is lost
		}
	})
	if ctx.Err() != nil {
		return Window{}, context.Cause(ctx)
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return Window{}, err
	}
	if p.Rate > 0 {
		<-window.Done()
	} else {
		// The window is over at the latest then.
		_ = s.Until(window, func(c Counts) bool { return c.Released >= s.Held()+c.Ended })
	}
	after := s.Counts()
	return Window{From: from, To: s.Elapsed(), Ended: after.Ended - before.Ended, Released: after.Released - before.Released}, context.Cause(ctx)
}

// Refills returns, for the ends of a window, the time until the quota that they freed was used again.
func (s *Run) Refills(w Window) report.Durations {
	var ends, releases report.Durations
	s.mu.Lock()
	for i := range s.units {
		unit := &s.units[i]
		if unit.Releases > 0 {
			releases = append(releases, unit.Released)
		}
		if unit.Ended > 0 {
			ends = append(ends, unit.Ended)
		}
	}
	s.mu.Unlock()
	return refills(ends, releases, s.Held(), w)
}

// refills pairs the n-th end with the n-th release after the quota was full.
func refills(ends, releases report.Durations, full int, w Window) report.Durations {
	slices.Sort(ends)
	slices.Sort(releases)
	var all report.Durations
	for i, end := range ends {
		if end >= w.From && end < w.To && full+i < len(releases) {
			// The event of a release can arrive before the answer to the end.
			all = append(all, max(0, releases[full+i]-end))
		}
	}
	return all
}
