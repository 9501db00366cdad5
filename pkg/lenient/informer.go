package lenient

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Lister lists the objects of a kind, giving each away as it comes, and watches them. A
// Client is one.
type Lister interface {
	Watcher
	Each(ctx context.Context, namespace string, opts metav1.ListOptions, each func(Object) error) (metav1.ListMeta, error)
}

// Source lists the objects of a kind as a whole, and watches them. Other clients are such.
type Source interface {
	Watcher
	List(ctx context.Context, namespace string, opts metav1.ListOptions) (runtime.Object, error)
}

// Watcher reports what becomes of the objects of a kind.
type Watcher interface {
	Watch(ctx context.Context, namespace string, opts metav1.ListOptions) (watch.Interface, error)
}

// Informer caches the objects of all namespaces, as transform leaves them; it is to leave
// one as it is that it is given again. Description is for logs.
func Informer(source Lister, description string, indexers cache.Indexers, transform cache.TransformFunc) (cache.SharedIndexInformer, error) {
	return informer(listed{&cache.ListWatch{
		ListWithContextFunc:  newest(source, transform),
		WatchFuncWithContext: watchAll(source),
	}}, description, indexers, transform)
}

// InformerOf is Informer for a source that cannot give away objects one by one; it may be
// asked to report them all as the first events of a watch.
func InformerOf(source Source, description string, indexers cache.Indexers, transform cache.TransformFunc) (cache.SharedIndexInformer, error) {
	return informer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return source.List(ctx, metav1.NamespaceAll, opts)
		},
		WatchFuncWithContext: watchAll(source),
	}, description, indexers, transform)
}

func informer(from cache.ListerWatcher, description string, indexers cache.Indexers, transform cache.TransformFunc) (cache.SharedIndexInformer, error) {
	// With an example given, a watch would report objects of its type alone.
	informer := cache.NewSharedIndexInformerWithOptions(from, nil,
		cache.SharedIndexInformerOptions{Indexers: indexers, ObjectDescription: description})
	if err := informer.SetTransform(transform); err != nil {
		return nil, fmt.Errorf("setting up a cache of %s: %w", description, err)
	}
	return informer, nil
}

func watchAll(source Watcher) cache.WatchFuncWithContext {
	return func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
		return source.Watch(ctx, metav1.NamespaceAll, opts)
	}
}

// listed is a ListWatch for a reflector that lists before it watches. To report the same
// objects as the first events of a watch takes an API server and its reader about twice as
// long: each is wrapped, checked and sent by itself.
type listed struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported has the reflector not list by watching.
func (listed) IsWatchListSemanticsUnSupported() bool { return true }

// So many objects are asked for at a time. An API server has the first page of a list in its
// memory as a rule, but may have to read others from etcd, which takes it seven times as long:
// so there should be one page alone. What takes longer than a minute it ends, though: after a
// failure pages are smaller.
const largestPage, smallestPage = 100_000, 1_000

// newest lists what is there now, whatever older version is asked for: an API server that
// lags behind may not know yet of what was released a moment ago. Each object is transformed
// before the next is read: as they come they are several times as large as what is kept of
// them. It is for one reflector, which calls it again when it has failed.
func newest(source Lister, transform cache.TransformFunc) cache.ListWithContextFunc {
	var page int64 = largestPage
	return func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		opts.Limit, opts.ResourceVersion, opts.ResourceVersionMatch = page, "", ""
		list := &List{}
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
				list.ResourceVersion = part.ResourceVersion // that of all parts
				return list, nil
			}
			opts.Continue = part.Continue
		}
	}
}
