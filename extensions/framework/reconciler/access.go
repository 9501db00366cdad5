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

// jobStore reads and patches the jobs of one kind.
type jobStore interface {
	Version() string
	Get(ctx context.Context, namespace, name string) (lenient.Object, error)
	GetJSON(ctx context.Context, namespace, name string) ([]byte, error)
	Patch(ctx context.Context, kind types.PatchType, namespace, name string, patch []byte, subresources ...string) (string, error)
}

// jobClient reads, patches and caches the jobs of one kind.
type jobClient struct {
	versionedJobs
	adapter framework.Adapter
	config  *rest.Config
	// concerns reports which jobs are cached with their spec; nil for all.
	concerns func(framework.Object) bool
}

func newJobClient(config *rest.Config, adapter framework.Adapter, served servedVersions, clock clock.WithTicker) (*jobClient, error) {
	jobs, err := newVersioned(config, adapter, served, clock)
	if err != nil {
		return nil, err
	}
	return &jobClient{versionedJobs: jobs, adapter: adapter, config: config}, nil
}

// informer caches the jobs of all namespaces, without unused fields.
func (c *jobClient) informer(report lenient.Report) (cache.SharedIndexInformer, error) {
	if !c.kind.Native {
		return lenient.Informer(c, report, c.kind.Resource, cache.Indexers{}, c.transform)
	}
	jobs, err := newNative(c.config, c.adapter)
	if err != nil {
		return nil, err
	}
	return lenient.InformerOf(jobs, report, c.kind.Resource, cache.Indexers{}, c.transform)
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

// native lists and watches the jobs of a namespace with the types and the compact encoding of the API server, so
// every object can be decoded.
type native func(namespace string) *gentype.ClientWithList[framework.Object, runtime.Object]

func newNative(config *rest.Config, adapter framework.Adapter) (native, error) {
	kind := adapter.Kind()
	gv := kind.GroupVersion()
	listKind := gv.WithKind(kind.Kind + "List")
	if _, err := kubescheme.Scheme.New(listKind); err != nil {
		return nil, fmt.Errorf("kind %s is not built into the API server: %w", kind.Kind, err)
	}
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath = &gv, "/apis"
	config.NegotiatedSerializer = kubescheme.Codecs.WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client for kind %s: %w", kind.Kind, err)
	}
	newList := func() runtime.Object {
		list, _ := kubescheme.Scheme.New(listKind)
		return list
	}
	return func(namespace string) *gentype.ClientWithList[framework.Object, runtime.Object] {
		return gentype.NewClientWithList[framework.Object, runtime.Object](kind.Resource, client,
			kubescheme.ParameterCodec, namespace, adapter.New, newList, gentype.PrefersProtobuf[framework.Object]())
	}, nil
}

func (n native) List(ctx context.Context, namespace string, opts metav1.ListOptions) (runtime.Object, error) {
	return n(namespace).List(ctx, opts)
}

func (n native) Watch(ctx context.Context, namespace string, opts metav1.ListOptions) (watch.Interface, error) {
	return n(namespace).Watch(ctx, opts)
}
