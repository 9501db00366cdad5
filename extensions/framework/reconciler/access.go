package reconciler

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/lenient"
)

// jobClient reads and patches the jobs of one kind.
type jobClient struct {
	adapter framework.Adapter
	// concerns reports which jobs are cached with their spec; nil for all.
	concerns func(framework.Object) bool
	jobSource
}

// jobSource is implemented by versionedJobs and native.
type jobSource interface {
	Get(ctx context.Context, namespace, name string) (lenient.Object, error)
	Patch(ctx context.Context, namespace, name string, patch []byte, subresources ...string) (lenient.Object, error)
	// GetJSON reads a job as the API server has it, and PatchJSON sends a JSON Patch of it.
	GetJSON(ctx context.Context, namespace, name string) ([]byte, error)
	PatchJSON(ctx context.Context, namespace, name string, patch []byte) (lenient.Object, error)
	// Version returns the version in which jobs are read and patched.
	Version() string
	// informer caches the jobs of all namespaces.
	informer(transform cache.TransformFunc, report lenient.Report) (cache.SharedIndexInformer, error)
}

// newJobClient creates a client for the adapter's kind.
func newJobClient(config *rest.Config, adapter framework.Adapter, served servedVersions, clock clock.WithTicker) (*jobClient, error) {
	var jobs jobSource
	var err error
	if adapter.Kind().Native {
		jobs, err = newNative(config, adapter)
	} else {
		jobs, err = newVersioned(config, adapter, served, clock)
	}
	if err != nil {
		return nil, err
	}
	return &jobClient{adapter: adapter, jobSource: jobs}, nil
}

// informer caches the jobs of all namespaces, without the fields that are not used.
func (c *jobClient) informer(report lenient.Report) (cache.SharedIndexInformer, error) {
	return c.jobSource.informer(c.transform, report)
}

func (c *jobClient) transform(obj any) (any, error) {
	job, isJob := obj.(framework.Object)
	switch {
	case !isJob || isUnmarked(job):
	case c.concerns != nil && !c.concerns(job):
		return newUnmarked(job), nil
	default:
		decision.Slim(c.adapter, job)
	}
	return obj, nil
}

// native uses the types and the compact encoding of the API server itself, so every
// object can be decoded.
type native struct {
	kind framework.Kind
	rest rest.Interface
	in   func(namespace string) *gentype.ClientWithList[framework.Object, runtime.Object]
}

func newNative(config *rest.Config, adapter framework.Adapter) (native, error) {
	kind := adapter.Kind()
	gv := kind.GroupVersion()
	listKind := gv.WithKind(kind.Kind + "List")
	if _, err := kubescheme.Scheme.New(listKind); err != nil {
		return native{}, fmt.Errorf("kind %s is not built into the API server: %w", kind.Kind, err)
	}
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath = &gv, "/apis"
	config.NegotiatedSerializer = kubescheme.Codecs.WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return native{}, fmt.Errorf("creating a client for kind %s: %w", kind.Kind, err)
	}
	newList := func() runtime.Object {
		list, _ := kubescheme.Scheme.New(listKind)
		return list
	}
	return native{kind, client, func(namespace string) *gentype.ClientWithList[framework.Object, runtime.Object] {
		return gentype.NewClientWithList[framework.Object, runtime.Object](kind.Resource, client,
			kubescheme.ParameterCodec, namespace, adapter.New, newList, gentype.PrefersProtobuf[framework.Object]())
	}}, nil
}

// Version returns the kind's only version.
func (n native) Version() string { return n.kind.Version }

// Get reads the current job.
func (n native) Get(ctx context.Context, namespace, name string) (lenient.Object, error) {
	return n.in(namespace).Get(ctx, name, metav1.GetOptions{})
}

// Patch sends a merge patch.
func (n native) Patch(ctx context.Context, namespace, name string, patch []byte, subresources ...string) (lenient.Object, error) {
	return n.in(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, subresources...)
}

// GetJSON reads a job as JSON.
func (n native) GetJSON(ctx context.Context, namespace, name string) ([]byte, error) {
	result := n.rest.Get().Namespace(namespace).Resource(n.kind.Resource).Name(name).SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// PatchJSON sends a JSON Patch.
func (n native) PatchJSON(ctx context.Context, namespace, name string, patch []byte) (lenient.Object, error) {
	return n.in(namespace).Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{})
}

func (n native) informer(transform cache.TransformFunc, report lenient.Report) (cache.SharedIndexInformer, error) {
	return lenient.InformerOf(n, report, n.kind.Resource, cache.Indexers{}, transform)
}

// List reads all jobs.
func (n native) List(ctx context.Context, namespace string, opts metav1.ListOptions) (runtime.Object, error) {
	return n.in(namespace).List(ctx, opts)
}

// Watch reports their changes.
func (n native) Watch(ctx context.Context, namespace string, opts metav1.ListOptions) (watch.Interface, error) {
	return n.in(namespace).Watch(ctx, opts)
}
