package lenient

import (
	"context"
	"fmt"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Lister lists the objects of a kind one at a time as they arrive, and watches them. A Client is a
// Lister.
type Lister interface {
	Watcher
	Each(ctx context.Context, namespace string, opts metav1.ListOptions, each func(Object) error) (metav1.ListMeta, error)
}

// Source lists all objects of a kind in one call, and watches them. Other clients are Sources.
type Source interface {
	Watcher
	List(ctx context.Context, namespace string, opts metav1.ListOptions) (runtime.Object, error)
}

// Watcher watches the objects of a kind.
type Watcher interface {
	Watch(ctx context.Context, namespace string, opts metav1.ListOptions) (watch.Interface, error)
}

// Report is called with the result of each list and watch, which may be nil.
type Report func(error)

// Informer returns an informer for the transformed objects of all namespaces. transform must be
// idempotent. description is for logs.
func Informer(source Lister, report Report, description string, indexers cache.Indexers, transform cache.TransformFunc) (cache.SharedIndexInformer, error) {
	return informer(listed{Reporting(newest(source, transform), watchAll(source), report)}, description, indexers, transform)
}

// InformerOf is like Informer for a source that cannot list objects one at a time. The informer may
// list them as the first events of a watch.
func InformerOf(source Source, report Report, description string, indexers cache.Indexers, transform cache.TransformFunc) (cache.SharedIndexInformer, error) {
	list := func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		return source.List(ctx, metav1.NamespaceAll, opts)
	}
	return informer(Reporting(list, watchAll(source), report), description, indexers, transform)
}

// watchAll watches all namespaces.
func watchAll(source Watcher) cache.WatchFuncWithContext {
	return func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
		return source.Watch(ctx, metav1.NamespaceAll, opts)
	}
}

func informer(from cache.ListerWatcher, description string, indexers cache.Indexers, transform cache.TransformFunc) (cache.SharedIndexInformer, error) {
	// With an example object, a watch would accept only objects of its type.
	informer := cache.NewSharedIndexInformerWithOptions(from, nil,
		cache.SharedIndexInformerOptions{Indexers: indexers, ObjectDescription: description})
	if err := informer.SetTransform(transform); err != nil {
		return nil, fmt.Errorf("setting up a cache of %s: %w", description, err)
	}
	return informer, nil
}

// Reporting returns a ListWatch that calls the functions and reports their results.
func Reporting(list cache.ListWithContextFunc, watches cache.WatchFuncWithContext, report Report) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			all, err := list(ctx, opts)
			report(err)
			return all, err
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			watched, err := watches(ctx, opts)
			report(err)
			return watched, err
		},
	}
}

// listed is a ListWatch for a reflector that lists before it watches. Receiving the same objects as the first events
// of a watch takes the API server and the client about twice as long, because each object is wrapped, checked and
// sent separately.
type listed struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported makes the reflector list with a list request.
func (listed) IsWatchListSemanticsUnSupported() bool { return true }

// largestPage and smallestPage limit the number of objects per list request. The API server usually has the first
// page of a list in memory but can read further pages from etcd, which takes seven times as long, so there should be
// only one page. However, it ends requests after a minute, so pages are smaller after a failure.
const largestPage, smallestPage = 100_000, 1_000

// newest lists the current objects, even if an older version is requested, because an API server that lags behind may
// not know the latest releases. It transforms each object before it decodes the next one: untransformed objects are
// several times as large. The function is for one reflector, which calls it again after a failure.
func newest(source Lister, transform cache.TransformFunc) cache.ListWithContextFunc {
	var page int64 = largestPage
	return func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		opts.Limit, opts.ResourceVersion, opts.ResourceVersionMatch = page, "", ""
		list := &metainternalversion.List{}
		keep := func(object Object) error {
			kept, err := transform(object)
			if err != nil {
				return err
			}
			list.Items = append(list.Items, kept.(runtime.Object))
			return nil
		}
		for {
			part, err := source.Each(ctx, metav1.NamespaceAll, opts, keep)
			if err != nil {
				page = max(page/10, smallestPage)
				return nil, err
			}
			if part.Continue == "" {
				page = largestPage
				list.ResourceVersion = part.ResourceVersion // the same for all pages
				return list, nil
			}
			opts.Continue = part.Continue
		}
	}
}
