package follow

import (
	"context"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
)

// Tolerate lets the kind of an informer be absent. isAbsent decides which list and watch errors mean that it is, and
// only the first of these is reported. absent returns whether there was one, so that callers do not wait for the cache
// of an absent kind.
func Tolerate(informer cache.SharedInformer, isAbsent func(error) bool, report func(context.Context, error)) (absent func() bool, err error) {
	found := &atomic.Bool{}
	err = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		switch {
		case !isAbsent(err):
			cache.DefaultWatchErrorHandler(ctx, r, err)
		case !found.Swap(true):
			report(ctx, err)
		}
	})
	return found.Load, err
}

// IfServed adds a handler to the informer of a kind that the API server may not serve, and reports once if it does not.
// synced reports whether the handler has seen all objects of the initial list or the kind is not served.
func IfServed(informer cache.SharedInformer, handler cache.ResourceEventHandler, report func(context.Context)) (synced cache.InformerSynced, err error) {
	absent, err := Tolerate(informer, apierrors.IsNotFound, func(ctx context.Context, _ error) { report(ctx) })
	if err != nil {
		return nil, err
	}
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		return nil, err
	}
	return func() bool { return registration.HasSynced() || absent() }, nil
}
