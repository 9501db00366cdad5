package loadgen

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/clientset"
	"kube-queue.dev/kube-queue/test/perf/rig"
)

// The maximum numbers of concurrent creates and ends. Creates are limited as in job-extensions, which has 8 workers
// for each kind. Ends are not, because any number of jobs can end at once.
const (
	createsInFlight = 8
	endsInFlight    = 32
)

// Unit is one unit with its measurements. Times are relative to the start of the run. 0 means never.
type Unit struct {
	Arrival
	Namespace, Name, Job string
	// Late is the delay of the request.
	Late time.Duration
	// Created and Ended are the times of the responses, Released is the time of the watch event.
	Created, Released, Ended time.Duration

	reported, released bool
	version            string
}

// Counts is the progress of a run.
type Counts struct {
	Created, Released, Ended int
	// Reported counts units with a reason for waiting.
	Reported int
	// Again counts releases of units that had been released before.
	Again int
	// LastEvent is the time of the last watch event, LastRelease that of the last release.
	LastEvent, LastRelease time.Duration
}

// Run is one run of a scenario.
type Run struct {
	*Scenario
	client rest.Interface
	// indexes has the indexes of the units by name.
	indexes map[string]int
	// due has the released units whose jobs have run long enough. It has room for all units.
	due chan int

	mu     sync.Mutex
	start  time.Time
	units  []Unit
	counts Counts
}

// New prepares a run of the scenario with the user of the config.
func New(config *rest.Config, s *Scenario) (*Run, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.UserAgent, config.DisableCompression = -1, "perf-player", true
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	r := &Run{Scenario: s, client: client.SchedulingV1alpha1().RESTClient(), indexes: map[string]int{}, start: time.Now(), due: make(chan int, s.Units())}
	namespaces := s.Namespaces()
	for index, a := range s.Arrivals() {
		job := fmt.Sprintf("%s-%d-%d", s.Classes[a.Class].Name, a.Leaf, a.Number)
		name := fmt.Sprintf("%s-job-%010x", job, index) // the index replaces the hash of job-extensions
		r.units = append(r.units, Unit{Arrival: a, Namespace: namespaces[a.Leaf], Name: name, Job: job})
		r.indexes[name] = index
	}
	return r, nil
}

// Counts returns the progress.
func (r *Run) Counts() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts
}

// Each visits the units, which are in the order of their arrival.
func (r *Run) Each(visit func(*Unit)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.units {
		visit(&r.units[i])
	}
}

// Progress returns the progress as text.
func (r *Run) Progress() string {
	c := r.Counts()
	return fmt.Sprintf("%d of %d units created, %d with a reason, %d released, %d ended", c.Created, len(r.units), c.Reported, c.Released, c.Ended)
}

// Elapsed returns the time since the start.
func (r *Run) Elapsed() time.Duration { return time.Since(r.start) }

// Play watches, creates and ends units until act returns. act waits for the events of the scenario.
// Units without a run time end only by TurnOver. If anything fails, the context of act is cancelled and
// Play returns the error.
func (r *Run) Play(ctx context.Context, act func(context.Context) error) error {
	tasks := []func(context.Context) error{func(ctx context.Context) error {
		at := func(index int) time.Duration { return r.units[index].At }
		return rig.InTime(ctx, r.start, createsInFlight, len(r.units), at, r.Create)
	}}
	if r.Classes[0].RunTime.Duration > 0 {
		tasks = append(tasks, func(ctx context.Context) error {
			return rig.Each(ctx, endsInFlight, len(r.units), func(ctx context.Context, _ int) error { return r.endDue(ctx, ctx) })
		})
	}
	ctx, cancel := context.WithCancel(ctx)
	stop, err := r.watch(ctx)
	if err == nil {
		err = rig.Beside(ctx, act, tasks...)
	}
	cancel()
	stop()
	return err
}

// stall is the time without events after which a run fails.
const stall = 2 * time.Minute

// Reach waits for a state. It fails if nothing happens for too long.
func (r *Run) Reach(ctx context.Context, state string, holds func(Counts) bool) error {
	begun := r.Elapsed()
	return rig.Until(ctx, 20*time.Millisecond, 24*time.Hour, nil, func(context.Context) (bool, error) {
		c := r.Counts()
		if !holds(c) && r.Elapsed()-max(c.LastEvent, begun) > stall {
			return false, fmt.Errorf("no event for %v while waiting until %s: %s; see the log of the controller", stall, state, r.Progress())
		}
		return holds(c), nil
	})
}

// watch starts the run and watches units until ctx ends. stop then waits for its end.
func (r *Run) watch(ctx context.Context) (stop func(), err error) {
	see := func(object any) { r.see(object.(*v1alpha1.QueueUnit)) }
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(r.client, "queueunits", metav1.NamespaceAll, fields.Everything()),
		ObjectType:    &v1alpha1.QueueUnit{},
		Handler:       cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, now any) { see(now) }},
		Transform: func(object any) (any, error) {
			u, ok := object.(*v1alpha1.QueueUnit)
			if !ok {
				return object, nil
			}
			return &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: u.Namespace, Name: u.Name, ResourceVersion: u.ResourceVersion},
				Status: v1alpha1.QueueUnitStatus{Phase: u.Status.Phase, Reason: u.Status.Reason}}, nil
		},
	})
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	cache.WaitForCacheSync(ctx.Done(), informer.HasSynced)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start = time.Now()
	return running.Wait, context.Cause(ctx)
}

// see processes a change of a unit.
func (r *Run) see(u *v1alpha1.QueueUnit) {
	index, ours := r.indexes[u.Name]
	if !ours {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Elapsed()
	r.counts.LastEvent = now
	unit := &r.units[index]
	unit.version = u.ResourceVersion
	if u.Status.Reason != "" && !unit.reported {
		unit.reported = true
		r.counts.Reported++
	}
	before := unit.released
	unit.released = u.Status.Phase == v1alpha1.PhaseDequeued
	if before || !unit.released {
		return
	}
	r.counts.LastRelease = now
	if unit.Released != 0 {
		r.counts.Again++
		return
	}
	unit.Released = now
	r.counts.Released++
	time.AfterFunc(r.Classes[unit.Class].RunTime.Duration, func() { r.due <- index })
}

// Held returns how many units of a turnover hold quota at a time.
func (r *Run) Held() int { return heldPerLeaf * r.LeafCount() }

// Last returns the last unit of a leaf. Leaves are numbered from 0.
func (r *Run) Last(leaf int) *Unit { return &r.units[len(r.units)-r.LeafCount()+leaf] }

// TurnOver ends units that hold quota, in the order of their release, for a time. It ends rate units per second or,
// if rate is 0, up to most units as fast as possible. It returns how many were released meanwhile.
func (r *Run) TurnOver(ctx context.Context, during time.Duration, rate float64, most int) (released int, took time.Duration, err error) {
	window, cancel := context.WithTimeout(ctx, during)
	defer cancel()
	before, from := r.Counts(), r.Elapsed()
	if rate > 0 {
		most = int(rate * during.Seconds())
	}
	err = rig.InTime(window, time.Now(), endsInFlight, most, rig.Rate(rate), func(context.Context, int) error {
		return r.endDue(ctx, window)
	})
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return 0, 0, err
	}
	if rate > 0 {
		<-window.Done()
	} else {
		// This ends with the window at the latest.
		_ = r.Reach(window, "the quota is used again", func(c Counts) bool { return c.Released >= r.Held()+c.Ended })
	}
	return r.Counts().Released - before.Released, r.Elapsed() - from, context.Cause(ctx)
}

// endDue waits until the window ends for a unit whose job has run long enough, and ends it. The write may outlast the
// window, so no unit is lost.
func (r *Run) endDue(ctx, window context.Context) error {
	select {
	case <-window.Done():
		return context.Cause(window)
	case index := <-r.due:
		return r.End(ctx, index)
	}
}
