package tolerant

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Source lists and watches the objects of a kind. A Client is one.
type Source interface {
	List(ctx context.Context, namespace string, opts metav1.ListOptions) (runtime.Object, error)
	Watch(ctx context.Context, namespace string, opts metav1.ListOptions) (watch.Interface, error)
}

// Informer caches the objects of all namespaces, as transform leaves them.
// Description is for logs.
func Informer(source Source, description string, indexers cache.Indexers, transform cache.TransformFunc) (cache.SharedIndexInformer, error) {
	lists := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return source.List(ctx, metav1.NamespaceAll, opts)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			return source.Watch(ctx, metav1.NamespaceAll, opts)
		},
	}
	// With an example given, a watch would tell of objects of its type alone.
	informer := cache.NewSharedIndexInformerWithOptions(lists, nil,
		cache.SharedIndexInformerOptions{Indexers: indexers, ObjectDescription: description})
	if err := informer.SetTransform(transform); err != nil {
		return nil, fmt.Errorf("setting up a cache of %s: %w", description, err)
	}
	return informer, nil
}
