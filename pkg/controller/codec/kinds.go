package codec

import (
	"math"
	"slices"
	"strings"
	"sync"

	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// Kinds number the kinds of jobs, because the core stores the number for each unit. Any goroutine may use them.
type Kinds struct {
	mutex   sync.Mutex
	numbers map[string]scheduler.JobKind
	// names are indexed by the number. 0 is unknown.
	names []string
}

// of returns the number of a kind. Users can create units with any kind. If there are more kinds than numbers, the
// kind is unknown.
func (k *Kinds) of(name string) scheduler.JobKind {
	if name == "" {
		return 0
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if n, known := k.numbers[name]; known {
		return n
	}
	if k.numbers == nil {
		k.numbers, k.names = map[string]scheduler.JobKind{}, []string{""}
	}
	if len(k.names) > math.MaxUint16 {
		return 0
	}
	name = strings.Clone(name) // it may be part of a large text
	n := scheduler.JobKind(len(k.names))
	k.names, k.numbers[name] = append(k.names, name), n
	return n
}

// Names returns the names by their numbers.
func (k *Kinds) Names() []string {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return slices.Clone(k.names)
}
