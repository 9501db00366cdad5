package reconciler

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// patience is how long a job waits until those that came before it have begun. Longer,
// one request that hangs would hold up its whole namespace.
const patience = time.Second

// arrivals takes keys off a work queue such that the order in which they came up can be
// told from what workers beside each other do. The units of a namespace are created side
// by side, but begun in the order in which its jobs were seen, and each names the one
// before it that is being created too: the controller gives free quota to the first unit
// that it is shown, and so knows which one comes before that.
type arrivals struct {
	queue workqueue.TypedInterface[types.NamespacedName]
	clock clock.WithTicker

	// taking makes one step of taking a key, its time and its place.
	taking sync.Mutex
	mu     sync.Mutex
	// ahead are, by namespace, those who may still have a unit to create, or are about to,
	// in order.
	ahead map[string][]*arrival
}

// arrival is one key taken off the queue.
type arrival struct {
	key types.NamespacedName
	// at is when it was taken, later than all that came before it.
	at time.Time
	// begun is closed once later ones need not wait for it: its unit is being created, by
	// this name, or there is none to create.
	begun chan struct{}
	unit  string
	all   *arrivals
}

func newArrivals(queue workqueue.TypedInterface[types.NamespacedName], clock clock.WithTicker) *arrivals {
	return &arrivals{queue: queue, clock: clock, ahead: map[string][]*arrival{}}
}

// take waits for the next key; nil when the queue is shut down. Whoever takes it
// calls pass in the end.
func (a *arrivals) take() *arrival {
	a.taking.Lock()
	defer a.taking.Unlock()
	key, shutdown := a.queue.Get()
	if shutdown {
		return nil
	}
	next := &arrival{key: key, at: a.clock.Now(), begun: make(chan struct{}), all: a}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ahead[key.Namespace] = append(a.ahead[key.Namespace], next)
	return next
}

// begin waits until all that came before in the namespace have begun, or patience is at
// its end, and begins the creation of a unit. It tells the name of the last unit before
// that is being created too, if there is one.
func (n *arrival) begin(ctx context.Context, unit string) (after string) {
	n.await(ctx)
	n.all.mu.Lock()
	defer n.all.mu.Unlock()
	line := n.all.ahead[n.key.Namespace]
	for _, before := range slices.Backward(line[:max(0, slices.Index(line, n))]) {
		if before.unit != "" {
			after = before.unit
			break
		}
	}
	n.unit = unit
	close(n.begun)
	return after
}

func (n *arrival) await(ctx context.Context) {
	n.all.mu.Lock()
	line := n.all.ahead[n.key.Namespace]
	before := slices.Clone(line[:max(0, slices.Index(line, n))])
	n.all.mu.Unlock()
	if len(before) == 0 {
		return
	}
	timer := n.all.clock.NewTimer(patience)
	defer timer.Stop()
	for _, other := range before {
		select {
		case <-other.begun:
		case <-timer.C():
			return
		case <-ctx.Done():
			return
		}
	}
}

// pass lets those that came later go on: it has created its unit, or will not create
// any. A second time it does nothing.
func (n *arrival) pass() {
	n.all.mu.Lock()
	defer n.all.mu.Unlock()
	line := n.all.ahead[n.key.Namespace]
	at := slices.Index(line, n)
	if at < 0 {
		return
	}
	if n.unit == "" {
		close(n.begun)
	}
	if line = slices.Delete(line, at, at+1); len(line) > 0 {
		n.all.ahead[n.key.Namespace] = line
	} else {
		delete(n.all.ahead, n.key.Namespace)
	}
}
