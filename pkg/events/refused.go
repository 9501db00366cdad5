package events

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/pkg/backoff"
)

const (
	// maxRefusals is how many refusals of its namespace an event outlives, unless it is kept.
	maxRefusals = 5
	// maxRefused limits the number of events that wait for a namespace that refuses events.
	maxRefused = 1000
)

// refusals are the waits between the requests for a namespace that refuses events.
var refusals = backoff.Policy{Initial: time.Second, Max: 5 * time.Minute}

// refusal is a namespace that refuses events. Until its state allows it, no event of it is tried.
type refusal struct {
	backoff.State
	// waiting are the waiting events, each with how often the namespace had refused events before.
	waiting map[types.NamespacedName]int32
	// err is the last refusal.
	err error
}

func (r *refusal) waits(key types.NamespacedName) bool { _, waits := r.waiting[key]; return waits }

// mayTry reports whether an event of a namespace that refuses events is tried now. Otherwise it waits, or is dropped
// if it has outlived too many refusals or too many others wait. A kept event is true as long as it is kept, and waits
// until the namespace accepts it.
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

// refused records that the API server forbids an event, for example because an admission policy denies events. It
// will probably do the same with others of the namespace, so they wait.
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

// accepted records that the API server accepts events of the namespace. The waiting ones are tried immediately.
func (w *Writer) accepted(namespace string) {
	if r := w.refusing[namespace]; r != nil {
		delete(w.refusing, namespace)
		for key := range r.waiting {
			w.queue.Add(key)
		}
	}
}

// waitsNoMore records that an event does not wait for its namespace any more. A namespace without waiting events is
// forgotten.
func (w *Writer) waitsNoMore(key types.NamespacedName) {
	if r := w.refusing[key.Namespace]; r != nil {
		if delete(r.waiting, key); len(r.waiting) == 0 {
			delete(w.refusing, key.Namespace)
		}
	}
}
