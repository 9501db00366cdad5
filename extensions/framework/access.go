package framework

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// jobClient reads and patches the jobs of one kind.
type jobClient struct {
	adapter Adapter
	in      func(namespace string) access
}

// access is what gentype's clients give, whatever type they are of.
type access interface {
	get(ctx context.Context, name string) (runtime.Object, error)
	list(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error)
	watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
	patch(ctx context.Context, name string, data []byte, subresources ...string) (runtime.Object, error)
}

// newJobClient makes a client for the adapter's kind.
func newJobClient(config *rest.Config, adapter Adapter) (*jobClient, error) {
	kind := adapter.Kind()
	if kind.Native {
		return nativeClient(config, adapter)
	}
	in, err := rawAccess(config, kind.GroupVersionKind, kind.Resource)
	if err != nil {
		return nil, err
	}
	return &jobClient{adapter: adapter, in: in}, nil
}

// rawAccess reads objects of which only the metadata is decoded.
func rawAccess(config *rest.Config, kind schema.GroupVersionKind, resource string) (func(namespace string) access, error) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(kind, &raw{})
	scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &rawList{})
	metav1.AddToGroupVersion(scheme, kind.GroupVersion())
	client, err := restClient(config, kind, serializer.NewCodecFactory(scheme))
	if err != nil {
		return nil, err
	}
	codec := runtime.NewParameterCodec(scheme)
	return func(namespace string) access {
		return typed[*raw, *rawList]{gentype.NewClientWithList[*raw, *rawList](resource, client, codec, namespace,
			func() *raw { return &raw{} }, func() *rawList { return &rawList{} })}
	}, nil
}

// nativeClient uses the types and the compact encoding of the API server itself.
func nativeClient(config *rest.Config, adapter Adapter) (*jobClient, error) {
	kind := adapter.Kind()
	listKind := kind.GroupVersion().WithKind(kind.Kind + "List")
	if _, err := kubescheme.Scheme.New(listKind); err != nil {
		return nil, fmt.Errorf("kind %s is not one of the API server's own: %w", kind.Kind, err)
	}
	client, err := restClient(config, kind.GroupVersionKind, kubescheme.Codecs)
	if err != nil {
		return nil, err
	}
	newList := func() runtime.Object {
		list, _ := kubescheme.Scheme.New(listKind)
		return list
	}
	return &jobClient{adapter: adapter, in: func(namespace string) access {
		return typed[Object, runtime.Object]{gentype.NewClientWithList[Object, runtime.Object](kind.Resource, client,
			kubescheme.ParameterCodec, namespace, adapter.New, newList, gentype.PrefersProtobuf[Object]())}
	}}, nil
}

func restClient(config *rest.Config, kind schema.GroupVersionKind, codecs serializer.CodecFactory) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	gv := kind.GroupVersion()
	config.GroupVersion, config.APIPath = &gv, "/apis"
	config.NegotiatedSerializer = codecs.WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for kind %s: %w", kind.Kind, err)
	}
	return client, nil
}

// typed puts a client of any type behind access.
type typed[T Object, L runtime.Object] struct {
	client *gentype.ClientWithList[T, L]
}

func (t typed[T, L]) get(ctx context.Context, name string) (runtime.Object, error) {
	return t.client.Get(ctx, name, metav1.GetOptions{})
}

func (t typed[T, L]) list(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	return t.client.List(ctx, opts)
}

func (t typed[T, L]) watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	return t.client.Watch(ctx, opts)
}

func (t typed[T, L]) patch(ctx context.Context, name string, data []byte, subresources ...string) (runtime.Object, error) {
	return t.client.Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{}, subresources...)
}

// get reads the job as it is now.
func (c *jobClient) get(ctx context.Context, namespace, name string) (Object, error) {
	found, err := c.in(namespace).get(ctx, name)
	if err != nil {
		return nil, err
	}
	return c.decode(found)
}

// patch sends a merge patch and returns the resourceVersion that came of it.
func (c *jobClient) patch(ctx context.Context, job Object, data []byte, subresources ...string) (string, error) {
	patched, err := c.in(job.GetNamespace()).patch(ctx, job.GetName(), data, subresources...)
	if err != nil {
		return "", err
	}
	return patched.(Object).GetResourceVersion(), nil
}

// informer caches the jobs of all namespaces, without what nobody reads.
func (c *jobClient) informer() (cache.SharedIndexInformer, error) {
	kind := c.adapter.Kind()
	example := c.adapter.New()
	if !kind.Native {
		example = rawExample(kind.GroupVersionKind)
	}
	return newInformer(c.in(metav1.NamespaceAll), example, cache.Indexers{}, c.transform)
}

// newInformer caches what access lists, once it is transformed. The example is of
// the type that lists and watches yield.
func newInformer(all access, example Object, indexers cache.Indexers, transform cache.TransformFunc) (cache.SharedIndexInformer, error) {
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc:  all.list,
		WatchFuncWithContext: all.watch,
	}, example, 0, indexers)
	if err := informer.SetTransform(transform); err != nil {
		return nil, fmt.Errorf("setting up a cache: %w", err)
	}
	return informer, nil
}

func rawExample(kind schema.GroupVersionKind) *raw {
	example := &raw{}
	example.SetGroupVersionKind(kind)
	return example
}

func (c *jobClient) transform(obj any) (any, error) {
	object, isObject := obj.(runtime.Object)
	if !isObject {
		return obj, nil
	}
	job, err := c.decode(object)
	if err != nil {
		return nil, err
	}
	slim(c.adapter, job)
	return job, nil
}

func (c *jobClient) decode(object runtime.Object) (Object, error) {
	switch object := object.(type) {
	case *raw:
		return object.decode(c.adapter), nil
	case Object:
		return object, nil
	default:
		return nil, fmt.Errorf("%T is not a job of kind %s", object, c.adapter.Kind().Kind)
	}
}
