package events

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/backoff"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
)

const (
	// renewEvery is well below one hour, the default of --event-ttl of the API server.
	renewEvery = 45 * time.Minute
	// flushFor limits how long the end of the program is delayed.
	flushFor = 5 * time.Second
	// workers is the maximum number of concurrent writes.
	workers  = 8
	retryMin = 100 * time.Millisecond
	retryMax = 30 * time.Second
)

// repeats are the waits between the writes of an event that happens again and again.
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
	// dropped is called with the reason of the API server for each event that is given up.
	dropped func(reason string)
	queue   workqueue.TypedRateLimitingInterface[types.NamespacedName]

	mu      sync.Mutex
	entries map[types.NamespacedName]*entry
	// kept is the name of the kept event of each object.
	kept map[types.UID]types.NamespacedName
	// refusing are the namespaces that refuse events.
	refusing map[string]*refusal
}

// entry is an event that is not written yet, is kept, or has happened again a short time ago.
type entry struct {
	event   Event
	keep    bool
	written bool
	// revised is whether the event has another revision than the one that was written.
	revised bool
	count   int32
	// due is when a kept event must be renewed.
	due time.Time

	// repeat is whether the event may happen again. more is how often it has happened since it was
	// last written, and paced when it may be written next.
	repeat bool
	more   int32
	paced  backoff.State

	// refused is how often the event was refused, and since the number of refusals of the namespace
	// when the event was added.
	refused, since int32
	// waits is whether the event waits for a namespace that refuses events.
	waits bool
}

// unwritten reports whether there is something to write before the event is renewed.
func (e *entry) unwritten() bool { return !e.written || e.revised || e.more > 0 }

// NewWriter returns a Writer. It writes nothing before Run. Each event that is given up is reported
// with dropped, which may be nil.
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
func (w *Writer) Write(e Event) { w.add(e, false, false) }

// Repeat reports that the event has happened, for the first time or again. It is one Event with a
// count. The first ones are written at once. If it goes on, several are written together, at growing
// intervals, with the latest message.
func (w *Writer) Repeat(e Event) { w.add(e, false, true) }

// Keep creates the event and renews it until Forget, or until another event of the object is kept.
// Keeping it again costs no write unless its revision has changed; the next renewal uses the new message.
func (w *Writer) Keep(e Event) { w.add(e, true, false) }

// Forget stops the renewal of the kept event of the object. The event remains until the API server
// deletes it. An event that is not written yet is still written.
func (w *Writer) Forget(object types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(object)
}

func (w *Writer) forget(object types.UID) {
	key, ok := w.kept[object]
	if !ok {
		return
	}
	delete(w.kept, object)
	if entry := w.entries[key]; entry != nil {
		entry.keep = false
		if entry.written {
			w.remove(key, entry)
		}
	}
}

func (w *Writer) add(e Event, keep, repeat bool) {
	key := types.NamespacedName{Namespace: e.namespace(), Name: e.Name()}
	w.mu.Lock()
	defer w.mu.Unlock()
	if keep && w.kept[e.Object.UID] != key {
		w.forget(e.Object.UID)
		w.kept[e.Object.UID] = key
	}
	known := w.entries[key]
	if known == nil {
		known = &entry{}
		if refusal := w.refusing[key.Namespace]; refusal != nil {
			known.since = refusal.Count
		}
		w.entries[key] = known
		w.queue.Add(key)
	}
	if keep && known.written && known.event.Revision != e.Revision {
		known.revised = true
		w.queue.Add(key)
	}
	known.event = e
	known.keep = known.keep || keep
	if !repeat {
		return
	}
	known.repeat = true
	if known.more++; known.written && known.more == 1 {
		w.queue.AddAfter(key, known.paced.Until.Sub(w.clock.Now()))
	}
}

// remove forgets an event.
func (w *Writer) remove(key types.NamespacedName, entry *entry) {
	w.await(key, entry, false)
	delete(w.entries, key)
	if uid := entry.event.Object.UID; w.kept[uid] == key {
		delete(w.kept, uid)
	}
}

// Run writes events until ctx is done, and then the remaining ones for at most a few seconds.
func (w *Writer) Run(ctx context.Context) {
	writeCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for w.next(writeCtx) {
			}
		})
	}
	<-ctx.Done()
	w.hurry()
	w.queue.ShutDown()
	stop := w.clock.NewTimer(flushFor)
	defer stop.Stop()
	idle := make(chan struct{})
	go func() {
		running.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-stop.C():
		klog.FromContext(ctx).Info("Some events were not written before the program ended", "left", w.queue.Len())
		cancel()
		<-idle
	}
}

// While writes events while work runs, and then the remaining ones, so that the last events are written
// too.
func (w *Writer) While(ctx context.Context, work func(context.Context) error) error {
	writing, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { w.Run(writing) })
	err := work(ctx)
	stop()
	running.Wait()
	return err
}

// hurry writes all events that are not written yet without further delay.
func (w *Writer) hurry() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, entry := range w.entries {
		if entry.unwritten() {
			entry.paced.Until = time.Time{}
			w.queue.Add(key)
		}
	}
}

func (w *Writer) next(ctx context.Context) bool {
	key, shutdown := w.queue.Get()
	if shutdown {
		return false
	}
	defer w.queue.Done(key)
	entry, probe := w.begin(key)
	if entry == nil {
		w.queue.Forget(key)
		return true
	}
	wrote, err := w.ensure(ctx, key, entry)
	switch {
	case err == nil:
		w.queue.Forget(key)
		w.done(key, entry, wrote)
	case isPermanent(err):
		w.queue.Forget(key)
		klog.FromContext(ctx).V(2).Info("Dropped an event that the API server rejects", "event", key, "err", err)
		w.drop(key, entry, err)
	case apierrors.IsForbidden(err):
		w.queue.Forget(key)
		if w.refused(key, entry, probe) {
			klog.FromContext(ctx).V(2).Info("Dropped an event that the API server refuses", "event", key, "err", err)
			w.drop(key, entry, err)
		}
	default:
		klog.FromContext(ctx).V(2).Info("Cannot write an event; trying again", "event", key, "err", err)
		w.queue.AddRateLimited(key)
	}
	return true
}

// begin returns the event if it is to be written now. Probe is whether its namespace refuses events
// and the answer decides about the others that wait for it.
func (w *Writer) begin(key types.NamespacedName) (due *entry, probe bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	entry := w.entries[key]
	if entry == nil {
		return nil, false
	}
	if entry.repeat && entry.written && !entry.keep {
		switch {
		case entry.more == 0 && repeats.Forgotten(entry.paced, now):
			w.remove(key, entry)
			return nil, false
		case entry.more == 0:
			w.queue.AddAfter(key, entry.paced.Until.Add(repeats.Quiet).Sub(now))
			return nil, false
		case now.Before(entry.paced.Until):
			w.queue.AddAfter(key, entry.paced.Until.Sub(now))
			return nil, false
		}
	}
	refusal := w.refusing[key.Namespace]
	switch {
	case refusal == nil, entry.written: // to renew an event adds none
		return entry, false
	case entry.outlived(refusal) || refusal.full(entry):
		w.dropped(string(metav1.StatusReasonForbidden))
		w.remove(key, entry)
		return nil, false
	case now.Before(refusal.Until):
		w.await(key, entry, true)
		w.queue.AddAfter(key, refusal.Until.Sub(now))
		return nil, false
	}
	refusal.Until = refusals.Step(refusal.State, now).Until // the others wait for the answer
	return entry, true
}

// write is what was written of an event.
type write struct {
	// count is the count of the event, and at when it was written.
	count int32
	at    time.Time
	// more is how many repetitions it includes.
	more int32
	// created is whether the event was created, and not only renewed.
	created bool
	// revision is the revision that was written.
	revision string
}

// ensure creates the event, counts its repetitions, and renews it if it is kept and due.
func (w *Writer) ensure(ctx context.Context, key types.NamespacedName, entry *entry) (write, error) {
	w.mu.Lock()
	e := *entry
	w.mu.Unlock()
	now := w.clock.Now()
	if e.written && e.more == 0 && !e.revised && now.Before(e.due) {
		return write{count: e.count, at: e.due.Add(-renewEvery), revision: e.event.Revision}, nil
	}
	if !e.written {
		_, err := w.client.Events(key.Namespace).Create(ctx, e.event.build(w.source, metav1.NewTime(now), max(e.more, 1)), metav1.CreateOptions{})
		if err == nil {
			return write{count: max(e.more, 1), at: now, more: e.more, created: true, revision: e.event.Revision}, nil
		}
		if !apierrors.IsAlreadyExists(err) || !e.keep && !e.repeat {
			return write{at: now}, ignoreExists(err)
		}
		// An earlier process has written it, and its age decides when to renew it.
		found, err := w.client.Events(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsForbidden(err):
			// Without the right to read it, its age is unknown, so it is renewed now.
		case err != nil:
			return write{at: now}, err
		case e.more == 0 && now.Before(found.LastTimestamp.Add(renewEvery)) && found.Annotations[wellknown.RevisionAnnotation] == digest(e.event.Revision):
			return write{count: found.Count, at: found.LastTimestamp.Time, revision: e.event.Revision}, nil
		default:
			e.count = found.Count
		}
	}
	count, err := w.renew(ctx, key, e.event, e.count+max(e.more, 1), now)
	return write{count: count, at: now, more: e.more, revision: e.event.Revision}, err
}

// renew sets the count of the event, its time and its message. It returns the count.
func (w *Writer) renew(ctx context.Context, key types.NamespacedName, event Event, count int32, now time.Time) (int32, error) {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{wellknown.RevisionAnnotation: lifecycle.OrNull(digest(event.Revision))}},
		"count":    count, "lastTimestamp": metav1.NewTime(now), "message": lifecycle.Shorten(event.Message), "type": event.Type,
	})
	if err != nil {
		return 0, fmt.Errorf("renewing event %s: %w", key, err)
	}
	_, err = w.client.Events(key.Namespace).Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = w.client.Events(key.Namespace).Create(ctx, event.build(w.source, metav1.NewTime(now), 1), metav1.CreateOptions{})
		count = 1
	}
	return count, ignoreExists(err)
}

// done records what was written.
func (w *Writer) done(key types.NamespacedName, entry *entry, wrote write) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if wrote.created {
		w.accepted(key.Namespace)
	}
	if w.entries[key] != entry {
		return // forgotten in the meantime
	}
	w.await(key, entry, false)
	entry.written, entry.count, entry.refused = true, wrote.count, 0
	if entry.keep {
		entry.revised = entry.event.Revision != wrote.revision
	}
	now := w.clock.Now()
	switch {
	case entry.keep:
		entry.due = wrote.at.Add(renewEvery)
		w.queue.AddAfter(key, entry.due.Sub(now))
		if entry.revised {
			w.queue.Add(key)
		}
	case entry.repeat:
		entry.more -= wrote.more
		entry.paced = repeats.Step(entry.paced, now)
		if entry.more > 0 {
			w.queue.AddAfter(key, entry.paced.Until.Sub(now))
		} else {
			w.queue.AddAfter(key, entry.paced.Until.Add(repeats.Quiet).Sub(now))
		}
	default:
		w.remove(key, entry)
	}
}

func (w *Writer) drop(key types.NamespacedName, entry *entry, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dropped(string(apierrors.ReasonForError(err)))
	if w.entries[key] == entry {
		w.remove(key, entry)
	}
}

// isPermanent reports whether a retry cannot succeed, because the namespace is deleted or being
// deleted or the API server rejects the event.
func isPermanent(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
