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
	queue  workqueue.TypedRateLimitingInterface[types.NamespacedName]

	mu      sync.Mutex
	entries map[types.NamespacedName]*entry
	// kept is the name of the kept event of each object.
	kept map[types.UID]types.NamespacedName
}

// entry is an event that is not written yet or is kept.
type entry struct {
	event   Event
	keep    bool
	written bool
	count   int32
	// due is when a kept event must be renewed.
	due time.Time
}

// NewWriter returns a Writer. It writes nothing before Run.
func NewWriter(client corev1client.EventsGetter, source Source, clk clock.WithTicker) *Writer {
	return &Writer{
		client: client, source: source, clock: clk,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](retryMin, retryMax),
			workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Clock: clk}),
		entries: map[types.NamespacedName]*entry{},
		kept:    map[types.UID]types.NamespacedName{},
	}
}

// Write creates the event once.
func (w *Writer) Write(e Event) { w.add(e, false) }

// Keep creates the event and renews it until Forget, or until another event of the object is kept.
// Keeping it again costs no write; the next renewal uses the new message.
func (w *Writer) Keep(e Event) { w.add(e, true) }

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
			delete(w.entries, key)
		}
	}
}

func (w *Writer) add(e Event, keep bool) {
	key := types.NamespacedName{Namespace: e.namespace(), Name: e.Name()}
	w.mu.Lock()
	defer w.mu.Unlock()
	if keep && w.kept[e.Object.UID] != key {
		w.forget(e.Object.UID)
		w.kept[e.Object.UID] = key
	}
	if known := w.entries[key]; known != nil {
		known.event = e
		known.keep = known.keep || keep
		return
	}
	w.entries[key] = &entry{event: e, keep: keep}
	w.queue.Add(key)
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

// hurry retries all events that are not written yet without further delay.
func (w *Writer) hurry() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, entry := range w.entries {
		if !entry.written {
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
	w.mu.Lock()
	entry := w.entries[key]
	w.mu.Unlock()
	if entry == nil {
		w.queue.Forget(key)
		return true
	}
	count, lastTime, err := w.ensure(ctx, key, entry)
	switch {
	case err == nil:
		w.queue.Forget(key)
		w.done(key, entry, count, lastTime)
	case isPermanent(err):
		w.queue.Forget(key)
		klog.FromContext(ctx).V(2).Info("Dropped an event that the API server rejects", "event", key, "err", err)
		w.drop(key, entry)
	default:
		klog.FromContext(ctx).V(2).Info("Cannot write an event; trying again", "event", key, "err", err)
		w.queue.AddRateLimited(key)
	}
	return true
}

// ensure creates the event and renews it if it is kept and due. It returns the count of the event
// and when it was last written.
func (w *Writer) ensure(ctx context.Context, key types.NamespacedName, entry *entry) (int32, time.Time, error) {
	w.mu.Lock()
	event, keep, written, count, due := entry.event, entry.keep, entry.written, entry.count, entry.due
	w.mu.Unlock()
	now := w.clock.Now()
	if written && now.Before(due) {
		return count, due.Add(-renewEvery), nil
	}
	if !written {
		_, err := w.client.Events(key.Namespace).Create(ctx, event.build(w.source, metav1.NewTime(now)), metav1.CreateOptions{})
		if err == nil {
			return 1, now, nil
		}
		if !apierrors.IsAlreadyExists(err) || !keep {
			return 0, now, ignoreExists(err)
		}
		// An earlier process has written it, and its age decides when to renew it.
		found, err := w.client.Events(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsForbidden(err):
			// Without the right to read it, its age is unknown, so it is renewed now.
		case err != nil:
			return 0, now, err
		case now.Before(found.LastTimestamp.Add(renewEvery)):
			return found.Count, found.LastTimestamp.Time, nil
		default:
			count = found.Count
		}
	}
	return w.renew(ctx, key, event, count+1, now)
}

// renew increments the count of the event and sets its time and message.
func (w *Writer) renew(ctx context.Context, key types.NamespacedName, event Event, count int32, now time.Time) (int32, time.Time, error) {
	patch, err := json.Marshal(map[string]any{
		"count": count, "lastTimestamp": metav1.NewTime(now), "message": lifecycle.Shorten(event.Message), "type": event.Type,
	})
	if err != nil {
		return 0, now, fmt.Errorf("renewing event %s: %w", key, err)
	}
	_, err = w.client.Events(key.Namespace).Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = w.client.Events(key.Namespace).Create(ctx, event.build(w.source, metav1.NewTime(now)), metav1.CreateOptions{})
		count = 1
	}
	return count, now, ignoreExists(err)
}

// done records that the event was last written at the time.
func (w *Writer) done(key types.NamespacedName, entry *entry, count int32, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	entry.written, entry.count = true, count
	if !entry.keep {
		delete(w.entries, key)
		return
	}
	entry.due = at.Add(renewEvery)
	w.queue.AddAfter(key, entry.due.Sub(w.clock.Now()))
}

func (w *Writer) drop(key types.NamespacedName, entry *entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.entries, key)
	if uid := entry.event.Object.UID; w.kept[uid] == key {
		delete(w.kept, uid)
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
