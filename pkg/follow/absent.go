package follow

import (
	"context"
	"sync/atomic"

	"k8s.io/client-go/tools/cache"
)

// Tolerate lets the kind of an informer be absent. isAbsent judges the errors of lists and watches, and only the
// first error that it accepts is reported. absent returns whether there was one, so that callers do not wait for the
// cache of an absent kind.
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
