package events

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/pkg/backoff"
)

const (
	// maxRefusals is how many refusals of its namespace an event outlives that is not kept.
	maxRefusals = 5
	// maxRefused limits the number of events that wait for a namespace that refuses events.
	maxRefused = 1000
)

// refusals are the waits between the requests for a namespace that refuses events.
var refusals = backoff.Policy{Initial: time.Second, Max: 5 * time.Minute}

// refusal is a namespace that refuses events. Until its state allows it, no event of it is tried.
type refusal struct {
	backoff.State
	// waiting is the number of events that wait for it.
	waiting int
}

// outlived reports whether an event has waited for too many refusals. A kept event is true as long as
// it is kept, and waits for the namespace to accept it.
func (e *entry) outlived(r *refusal) bool {
	return !e.keep && (r.Count-e.since >= maxRefusals || e.refused >= maxRefusals)
}

// full reports whether too many others wait for the namespace.
func (r *refusal) full(e *entry) bool { return !e.keep && !e.waits && r.waiting >= maxRefused }

// await records whether the event waits for its namespace.
func (w *Writer) await(key types.NamespacedName, entry *entry, waits bool) {
	refusal := w.refusing[key.Namespace]
	if refusal != nil && waits != entry.waits {
		if waits {
			refusal.waiting++
		} else {
			refusal.waiting--
		}
	}
	entry.waits = waits
}

// refused records that the API server forbids an event, as it does if an admission policy refuses
// events. It is expected to do the same with others of the namespace, so they wait. It reports whether
// the event must be dropped.
func (w *Writer) refused(key types.NamespacedName, entry *entry, probe bool) (drop bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	found := w.refusing[key.Namespace]
	switch {
	case found == nil:
		w.forgetRefusals(now)
		found = &refusal{State: refusals.Step(backoff.State{}, now)}
		w.refusing[key.Namespace] = found
	case probe || !now.Before(found.Until):
		found.State = refusals.Step(found.State, now)
	}
	if entry.refused++; entry.outlived(found) || found.full(entry) {
		return true
	}
	w.await(key, entry, true)
	w.queue.AddAfter(key, found.Until.Sub(now))
	return false
}

// forgetRefusals forgets the namespaces for which no event waits any more.
func (w *Writer) forgetRefusals(now time.Time) {
	maps.DeleteFunc(w.refusing, func(_ string, r *refusal) bool { return r.waiting == 0 && now.After(r.Until) })
}

// accepted records that the API server accepts events of the namespace. Those that wait for it are
// tried at once.
func (w *Writer) accepted(namespace string) {
	if w.refusing[namespace] == nil {
		return
	}
	delete(w.refusing, namespace)
	for key, entry := range w.entries {
		if key.Namespace != namespace {
			continue
		}
		entry.since = 0
		if entry.waits {
			entry.waits = false
			w.queue.Add(key)
		}
	}
}
