package reconciler

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

var _ workqueue.Queue[types.NamespacedName] = (*lanes)(nil)

// lanes is the order in which jobs are worked on: those whose quota runs before those
// that are still to be put in line. In a crowd of new jobs the releases would else
// stand behind all of them, and quota idle meanwhile; and there are only as many of
// the first kind as there is quota.
type lanes struct {
	mu sync.Mutex
	// hurries are those that go to the first lane when they are pushed next.
	hurries map[types.NamespacedName]bool
	// first and second are in order of arrival. What has moved to the first is left in
	// the second, with a number that no longer counts.
	first, second []place
	// queued tells in which place a key is, and numbers how many there were.
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
	return &lanes{hurries: map[types.NamespacedName]bool{}, queued: map[types.NamespacedName]place{}}
}

// hurry has the key go to the first lane with its next Add.
func (l *lanes) hurry(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hurries[key] = true
}

// Touch moves a key that is queued and hurries to the first lane.
func (l *lanes) Touch(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hurries[key] && !l.queued[key].first {
		l.enter(key)
	}
	delete(l.hurries, key)
}

// Push adds a key.
func (l *lanes) Push(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enter(key)
}

func (l *lanes) enter(key types.NamespacedName) {
	l.numbers++
	at := place{key: key, number: l.numbers, first: l.hurries[key]}
	delete(l.hurries, key)
	l.queued[key] = at
	if at.first {
		l.first = append(l.first, at)
	} else {
		l.second = append(l.second, at)
	}
}

// Len is the number of keys.
func (l *lanes) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queued)
}

// Pop takes the next key out.
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
				l.first, l.second = nil, nil // places that no longer count are all that is left
			}
			return next.key
		}
	}
}
