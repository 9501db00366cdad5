package events

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/pkg/backoff"
)

const (
	// maxRefusals is the number of refusals of its namespace after which an event is dropped, unless it is kept.
	maxRefusals = 5
	// maxRefused limits the number of events that wait for a namespace that refuses events.
	maxRefused = 1000
)

// refusals is the backoff of requests for a namespace that refuses events.
var refusals = backoff.Policy{Initial: time.Second, Max: 5 * time.Minute}

// refusal is a namespace that refuses events. None of its events is tried before State allows it.
type refusal struct {
	backoff.State
	// waiting maps each waiting event to how often the namespace had refused events before.
	waiting map[types.NamespacedName]int32
	// err is the last refusal.
	err error
}

func (r *refusal) waits(key types.NamespacedName) bool { _, waits := r.waiting[key]; return waits }

// mayTry reports whether to try an event now although its namespace refuses events. If not, the event waits, or is
// dropped after too many refusals or if too many others wait. A kept event is not dropped: it waits until the namespace
// accepts it.
func (w *Writer) mayTry(ctx context.Context, key types.NamespacedName, e *entry) bool {
	r, now := w.refusing[key.Namespace], w.clock.Now()
	full := len(r.waiting) >= maxRefused
	if !r.waits(key) {
		r.waiting[key] = r.Count
	} else {
		full = r.Count-r.waiting[key] >= maxRefusals
	}
	switch {
	case full && !e.keep:
		w.drop(ctx, key, r.err)
	case now.Before(r.Until):
		w.queue.AddAfter(key, r.Until.Sub(now))
	default:
		r.Until = refusals.Step(r.State, now).Until // the others wait for the answer
		return true
	}
	return false
}

// refused records that the API server forbids an event, for example because an admission policy denies events. It will
// probably forbid other events of the namespace too, so they wait.
func (w *Writer) refused(key types.NamespacedName, probe bool, err error) {
	r, now := w.refusing[key.Namespace], w.clock.Now()
	if r == nil {
		r = &refusal{waiting: map[types.NamespacedName]int32{}}
		w.refusing[key.Namespace] = r
	}
	if r.err = err; probe || !now.Before(r.Until) {
		r.State = refusals.Step(r.State, now)
	}
	if !r.waits(key) {
		r.waiting[key] = r.Count - 1
	}
	w.queue.Add(key) // to wait, or to be dropped
}

// accepted records that the API server accepts events of the namespace. The waiting events are tried immediately.
func (w *Writer) accepted(namespace string) {
	if r := w.refusing[namespace]; r != nil {
		delete(w.refusing, namespace)
		for key := range r.waiting {
			w.queue.Add(key)
		}
	}
}

// waitsNoMore records that an event no longer waits for its namespace. It forgets a namespace without waiting events.
func (w *Writer) waitsNoMore(key types.NamespacedName) {
	if r := w.refusing[key.Namespace]; r != nil {
		if delete(r.waiting, key); len(r.waiting) == 0 {
			delete(w.refusing, key.Namespace)
		}
	}
}
