// Package loadgen creates the units of a scenario and simulates their jobs, as job-extensions
// would: it creates a unit at its time, observes its release and writes its end after its run time.
//
// The load generator shares the machine with the programs that it measures, so it discards
// responses and remembers only some fields of units. It sends the same writes as job-extensions,
// and no others.
//
// Invariant: a unit is created at its time even if others are late (an open loop). A late unit is
// created immediately, and its delay is recorded.
package loadgen

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/generated/clientset/versioned"
	"kube-queue.dev/kube-queue/test/perf/pace"
	"kube-queue.dev/kube-queue/test/perf/scenario"
)

// The maximum numbers of concurrent creates and ends. Creates are limited as in job-extensions,
// which has 8 workers for each kind. Ends are caused by any number of jobs.
const (
	createsInFlight = 8
	endsInFlight    = 32
)

// Unit has the measurements of one unit. Times are relative to the start of the run. 0 means never.
type Unit struct {
	// Late is how long after its time the request was sent.
	Late time.Duration
	// Created and Ended are the times of the responses, Released is the time of the watch event.
	Created, Released, Ended time.Duration
	// Releases is how often the unit was released. It must be 1.
	Releases int

	reported, released bool
	version            string
}

// Counts is the progress of a run.
type Counts struct {
	Created, Released, Ended int
	// Reported counts units with a reason for waiting.
	Reported int
	// Again counts units that were released more than once.
	Again int
	// LastEvent is the time of the last watch event, LastRelease that of the last release.
	LastEvent, LastRelease time.Duration
}

// Run is one run of a scenario.
type Run struct {
	*scenario.Scenario
	client     versioned.Interface
	arrivals   []scenario.Arrival
	namespaces []string
	// due has the released units whose jobs have run long enough. It has room for all units.
	due chan int

	mu     sync.Mutex
	start  time.Time
	units  []Unit
	counts Counts
}

// New prepares a run of the scenario with the user of the config.
func New(config *rest.Config, s *scenario.Scenario) (*Run, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.UserAgent, config.DisableCompression = -1, "perf-player", true
	client, err := versioned.NewForConfig(config)
	arrivals := s.Arrivals()
	return &Run{Scenario: s, client: client, arrivals: arrivals, namespaces: s.Namespaces(),
		start: time.Now(), due: make(chan int, len(arrivals)), units: make([]Unit, len(arrivals))}, err
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
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop, err := r.watch(ctx)
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	begin := func(part func() error) {
		group.Go(func() {
			if err := part(); err != nil {
				cancel(err)
			}
		})
	}
	begin(func() error {
		at := func(index int) time.Duration { return r.arrivals[index].At }
		return pace.InTime(ctx, r.start, createsInFlight, len(r.units), at, r.Create)
	})
	if r.Classes[0].RunTime.Duration > 0 {
		begin(func() error { return pace.Each(ctx, endsInFlight, len(r.units), r.endDue) })
	}
	err = act(ctx)
	// The cause of the context's end is more useful than the error of act that results from it.
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	cancel(nil)
	group.Wait()
	stop()
	return err
}

// stall is the time without events after which a run fails.
const stall = 2 * time.Minute

// Reach waits for a state. It fails if nothing happens for too long.
func (r *Run) Reach(ctx context.Context, state string, holds func(Counts) bool) error {
	begun := r.Elapsed()
	return pace.Until(ctx, 20*time.Millisecond, 24*time.Hour, nil, func(context.Context) (bool, error) {
		c := r.Counts()
		if !holds(c) && r.Elapsed()-max(c.LastEvent, begun) > stall {
			return false, fmt.Errorf("no event for %v while waiting until %s: %s; see the log of the controller", stall, state, r.Progress())
		}
		return holds(c), nil
	})
}

// watch starts the run and watches units until ctx ends. stop then waits for its end.
func (r *Run) watch(ctx context.Context) (stop func(), err error) {
	informer := cache.NewSharedInformer(cache.NewListWatchFromClient(r.client.SchedulingV1alpha1().RESTClient(), "queueunits",
		metav1.NamespaceAll, fields.Everything()), &v1alpha1.QueueUnit{}, 0)
	if err := informer.SetTransform(func(object any) (any, error) {
		u, ok := object.(*v1alpha1.QueueUnit)
		if !ok {
			return object, nil
		}
		return &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: u.Namespace, Name: u.Name, ResourceVersion: u.ResourceVersion},
			Status: v1alpha1.QueueUnitStatus{Phase: u.Status.Phase, Reason: u.Status.Reason}}, nil
	}); err != nil {
		return nil, err
	}
	see := func(object any) { r.see(object.(*v1alpha1.QueueUnit)) }
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, now any) { see(now) }}); err != nil {
		return nil, err
	}
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
	index, ours := r.Index(u.Name)
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
	switch unit.Releases++; unit.Releases {
	case 1:
		unit.Released = now
		r.counts.Released++
		time.AfterFunc(r.Classes[r.arrivals[index].Class].RunTime.Duration, func() { r.due <- index })
	case 2:
		r.counts.Again++
	}
}
