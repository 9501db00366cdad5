package reconciler

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

var _ workqueue.Queue[types.NamespacedName] = (*lanes)(nil)

// lanes is the order in which jobs are processed: jobs that hold quota before jobs that are not queued yet.
// Otherwise, after a burst of new jobs, releases would wait behind all of them while quota is idle. The quota bounds
// the number of jobs in the first lane.
type lanes struct {
	mu sync.Mutex
	// urgent are the keys that enter the first lane at their next push.
	urgent map[types.NamespacedName]bool
	// first and second are in order of arrival. A key that has moved to the first also remains in the second, with an
	// outdated number.
	first, second []place
	// queued has the current place of each key, and numbers the number of places so far.
	queued  map[types.NamespacedName]place
	numbers uint64
}

// place of a key in one of the lanes.
type place struct {
	key    types.NamespacedName
	number uint64
	first  bool
}

func newLanes() *lanes {
	return &lanes{urgent: map[types.NamespacedName]bool{}, queued: map[types.NamespacedName]place{}}
}

// prioritize makes the key enter the first lane at its next Add.
func (l *lanes) prioritize(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.urgent[key] = true
}

// Touch moves a queued key to the first lane if it is urgent.
func (l *lanes) Touch(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.urgent[key] && !l.queued[key].first {
		l.enter(key)
	}
	delete(l.urgent, key)
}

func (l *lanes) Push(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enter(key)
}

func (l *lanes) enter(key types.NamespacedName) {
	l.numbers++
	at := place{key: key, number: l.numbers, first: l.urgent[key]}
	delete(l.urgent, key)
	l.queued[key] = at
	if at.first {
		l.first = append(l.first, at)
	} else {
		l.second = append(l.second, at)
	}
}

func (l *lanes) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queued)
}

// Pop removes and returns the next key.
func (l *lanes) Pop() types.NamespacedName {
	l.mu.Lock()
	defer l.mu.Unlock()
	lane := &l.second
	if len(l.first) > 0 {
		lane = &l.first
	}
	for {
		next := (*lane)[0]
		*lane = (*lane)[1:]
		if l.queued[next.key] == next {
			delete(l.queued, next.key)
			if len(l.queued) == 0 {
				l.first, l.second = nil, nil // only outdated places are left
			}
			return next.key
		}
	}
}
