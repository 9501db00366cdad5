package events

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/pkg/backoff"
)

const (
	// renewEvery is well below one hour, the default of --event-ttl of the API server.
	renewEvery = 45 * time.Minute
	// flushFor limits how long events delay the end of the program.
	flushFor = 5 * time.Second
	// workers is the maximum number of concurrent writes.
	workers  = 8
	retryMin = 100 * time.Millisecond
	retryMax = 30 * time.Second
)

// repeats is the backoff of writes for an event that happens repeatedly.
var repeats = backoff.Policy{Free: 3, Initial: 10 * time.Second, Max: 10 * time.Minute, Quiet: 20 * time.Minute}

// Source identifies the reporter of events.
type Source struct {
	// Component is the name of the program.
	Component string
	// Instance distinguishes this process from others of the component.
	Instance string
}

// Writer writes events in the background.
type Writer struct {
	client corev1client.EventsGetter
	source Source
	clock  clock.WithTicker
	// dropped is called with the API server's reason for each dropped event.
	dropped func(reason string)
	queue   workqueue.TypedRateLimitingInterface[types.NamespacedName]

	mu      sync.Mutex
	entries map[types.NamespacedName]*entry
	// kept is the name of the kept event of each object.
	kept map[types.UID]types.NamespacedName
	// refusing are the namespaces that refuse events.
	refusing map[string]*refusal
	// ending means that events no longer wait.
	ending bool
}

// entry is an event that is not written yet, is kept, or was repeated recently.
type entry struct {
	event        Event
	keep, repeat bool
	// count and revision are those of the Event. The count is 0 until it is written.
	count    int32
	revision string
	// more is how often a repeated event has happened since it was last written.
	more int32
	// paced is the earliest time to write a repeated event again, or the latest time to write a kept event again.
	paced backoff.State
}

// isNew reports whether the API server lacks the event or its current revision.
func (e *entry) isNew() bool { return e.count == 0 || e.keep && e.revision != e.event.Revision }

// pending reports whether there is something to write before the event is renewed.
func (e *entry) pending() bool { return e.isNew() || e.more > 0 }

// due returns when to process the event next.
func (e *entry) due() time.Time {
	switch {
	case e.isNew():
		return time.Time{}
	case e.keep || e.more > 0:
		return e.paced.Until
	}
	return e.paced.Until.Add(repeats.Quiet) // to forget it
}

// NewWriter returns a Writer. It writes nothing before While. dropped, which can be nil, is called for each dropped
// event.
func NewWriter(client corev1client.EventsGetter, source Source, clk clock.WithTicker, dropped func(reason string)) *Writer {
	if dropped == nil {
		dropped = func(string) {}
	}
	return &Writer{
		client: client, source: source, clock: clk, dropped: dropped,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](retryMin, retryMax),
			workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Clock: clk}),
		entries:  map[types.NamespacedName]*entry{},
		kept:     map[types.UID]types.NamespacedName{},
		refusing: map[string]*refusal{},
	}
}

// Write creates the event once.
func (w *Writer) Write(e Event) { w.add(e, entry{}) }

// Repeat reports that the event has happened, for the first time or again. It is one Event with a count. The first few
// times are written immediately. Later ones are combined, at growing intervals, with the latest message.
func (w *Writer) Repeat(e Event) { w.add(e, entry{repeat: true, more: 1}) }

// Keep creates the event and renews it until Forget, or until another event of the object is kept.
// Keeping it again costs no write unless its revision has changed; the next renewal uses the new message.
func (w *Writer) Keep(e Event) { w.add(e, entry{keep: true}) }

// Forget stops the renewal of the kept event of the object. The event remains until the API server
// deletes it. An event that is not written yet is still written.
func (w *Writer) Forget(object types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(object)
}

func (w *Writer) forget(object types.UID) {
	key := w.kept[object]
	delete(w.kept, object)
	if e := w.entries[key]; e != nil {
		e.keep = false
		if e.count > 0 {
			w.remove(key)
		}
	}
}

func (w *Writer) add(event Event, how entry) {
	key := types.NamespacedName{Namespace: event.namespace(), Name: event.Name()}
	w.mu.Lock()
	defer w.mu.Unlock()
	if how.keep && w.kept[event.Object.UID] != key {
		w.forget(event.Object.UID)
		w.kept[event.Object.UID] = key
	}
	e, known := w.entries[key]
	if !known {
		e = &entry{}
		w.entries[key] = e
	}
	queued := known && e.pending()
	e.event, e.keep, e.repeat, e.more = event, e.keep || how.keep, e.repeat || how.repeat, e.more+how.more
	if !queued && e.pending() {
		w.schedule(key, e)
	}
}

// schedule queues the event for when it is due.
func (w *Writer) schedule(key types.NamespacedName, e *entry) {
	w.queue.AddAfter(key, e.due().Sub(w.clock.Now()))
}

// While writes events while work runs. After that, it spends at most a few seconds on the remaining events.
func (w *Writer) While(ctx context.Context, work func(context.Context) error) error {
	writing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for w.next(writing) {
			}
		})
	}
	err := work(ctx)
	w.hurry()
	w.queue.ShutDown()
	late := time.AfterFunc(flushFor, func() {
		klog.FromContext(ctx).Info("Some events were not written before the program ended", "left", w.queue.Len())
		cancel()
	})
	defer late.Stop()
	running.Wait()
	return err
}

// hurry makes all pending events due immediately.
func (w *Writer) hurry() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ending = true
	for key, e := range w.entries {
		if e.pending() {
			w.queue.Add(key)
		}
	}
}

// next writes the next event if it is due.
func (w *Writer) next(ctx context.Context) bool {
	key, shutdown := w.queue.Get()
	if shutdown {
		return false
	}
	defer w.queue.Done(key)
	for w.try(ctx, key) {
		select {
		case <-ctx.Done():
		case <-w.clock.After(retryMin):
		}
	}
	return true
}

// try writes the event if it is due. again is whether the caller must retry, because a queue that ends does not.
func (w *Writer) try(ctx context.Context, key types.NamespacedName) (again bool) {
	e, probe := w.begin(ctx, key)
	if e == nil {
		w.queue.Forget(key)
		return false
	}
	created, err := w.write(ctx, key, e)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		w.done(key, e, created)
	case isPermanent(err):
		w.drop(ctx, key, err)
	case apierrors.IsForbidden(err):
		w.refused(key, probe, err)
	default:
		klog.FromContext(ctx).V(2).Info("Cannot write an event; trying again", "event", key, "err", err)
		w.queue.AddRateLimited(key)
		return w.ending && ctx.Err() == nil
	}
	w.queue.Forget(key)
	return false
}

// begin returns a copy of the event if it must be written now. probe is whether its namespace refuses events, so that
// the result decides about the other waiting events.
func (w *Writer) begin(ctx context.Context, key types.NamespacedName) (due *entry, probe bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.entries[key]
	switch {
	case e == nil:
		w.waitsNoMore(key)
		return nil, false
	case w.clock.Now().Before(e.due()) && !(w.ending && e.pending()):
		w.schedule(key, e)
		return nil, false
	case !e.keep && !e.pending(): // it has been quiet
		w.remove(key)
		return nil, false
	}
	if r := w.refusing[key.Namespace]; r != nil && (e.count == 0 || r.waits(key)) { // a renewal does not add an event
		if probe = w.mayTry(ctx, key, e); !probe {
			return nil, false
		}
	}
	return new(*e), probe
}

// done records what was written.
func (w *Writer) done(key types.NamespacedName, wrote *entry, created bool) {
	if created {
		w.accepted(key.Namespace)
	}
	e := w.entries[key]
	switch {
	case e == nil: // forgotten in the meantime
	case !e.keep && !e.repeat:
		w.remove(key)
	default:
		w.waitsNoMore(key)
		e.count, e.revision, e.paced = wrote.count, wrote.revision, wrote.paced
		e.more = max(e.more-wrote.more, 0)
		w.schedule(key, e)
	}
}

// drop gives up an event.
func (w *Writer) drop(ctx context.Context, key types.NamespacedName, err error) {
	klog.FromContext(ctx).V(2).Info("Dropped an event that the API server refuses", "event", key, "err", err)
	w.dropped(string(apierrors.ReasonForError(err)))
	w.remove(key)
}

// remove forgets an event.
func (w *Writer) remove(key types.NamespacedName) {
	w.waitsNoMore(key)
	if e := w.entries[key]; e != nil && w.kept[e.event.Object.UID] == key {
		delete(w.kept, e.event.Object.UID)
	}
	delete(w.entries, key)
}
