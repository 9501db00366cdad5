// Package follow passes the objects of informers to functions.
//
// Terms. An object is seen when it is new or has changed, and gone when it no longer exists. A kind is absent if the
// API server does not serve it, or does not allow this program to read it. Its informer keeps trying.
package follow

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// Handler calls seen with each object that an informer adds or updates, and gone with the last known version of each
// that it deletes. It ignores objects of another type.
func Handler[T any](seen, gone func(T)) cache.ResourceEventHandlerFuncs {
	pass := func(object any, to func(T)) {
		if typed, is := object.(T); is {
			to(typed)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { pass(object, seen) },
		UpdateFunc: func(_, object any) { pass(object, seen) },
		DeleteFunc: func(object any) {
			if tombstone, is := object.(cache.DeletedFinalStateUnknown); is {
				object = tombstone.Obj
			}
			pass(object, gone)
		},
	}
}

// Changes is like Handler, but ignores updates for which same returns true.
func Changes[T metav1.Object](same func(before, now T) bool, seen, gone func(T)) cache.ResourceEventHandlerFuncs {
	handler := Handler(seen, gone)
	handler.UpdateFunc = func(b, o any) {
		before, had := b.(T)
		object, is := o.(T)
		switch {
		case !had || !is:
		case before.GetUID() != object.GetUID(): // the deletion was missed
			gone(before)
			seen(object)
		case !same(before, object):
			seen(object)
		}
	}
	return handler
}

// Objects adds a Handler to the informer, which calls both functions from one goroutine. synced reports whether all objects
// of the initial list were seen.
func Objects[T any](informer cache.SharedInformer, seen, gone func(T)) (synced cache.InformerSynced, err error) {
	registration, err := informer.AddEventHandler(Handler(seen, gone))
	if err != nil {
		return nil, err
	}
	return registration.HasSynced, nil
}

// Wake sends a value to a channel with a buffer of one, unless the buffer is full.
func Wake(ready chan<- struct{}) {
	select {
	case ready <- struct{}{}:
	default:
	}
}

// Pause waits for the duration, or less if the context ends or ready receives. ready can be nil.
func Pause(ctx context.Context, clock clock.Clock, duration time.Duration, ready <-chan struct{}) {
	timer := clock.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-ready:
	case <-timer.C():
	}
}
