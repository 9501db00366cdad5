package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/pkg/events"
	"kube-queue.dev/kube-queue/pkg/follow"
	"kube-queue.dev/kube-queue/pkg/lenient"
	"kube-queue.dev/kube-queue/pkg/requests"
)

const (
	retryMin = 50 * time.Millisecond
	retryMax = 30 * time.Second
	// stepTimeout limits all requests of one step.
	stepTimeout = 15 * time.Second
	// detailEvery limits how often a detail such as an estimated time is written.
	detailEvery = 30 * time.Second
	// workers is the maximum number of units that are processed concurrently.
	workers = 4
	// byUnit indexes requests by the UID of their unit.
	byUnit = "unit"
)

// The resources that are read and written.
var (
	queueUnits   = v1alpha1.SchemeGroupVersion.WithResource("queueunits")
	checks       = v1alpha1.SchemeGroupVersion.WithResource("admissionchecks")
	configs      = v1alpha1.SchemeGroupVersion.WithResource("provisioningrequestconfigs")
	podTemplates = schema.GroupVersionResource{Version: "v1", Resource: "podtemplates"}
)

// Jobs reads the pods of jobs.
type Jobs interface {
	// PodsOf returns the pod sets of the job of a unit with complete templates.
	PodsOf(ctx context.Context, unit *v1alpha1.QueueUnit) ([]framework.PodSet, error)
}

// Events takes the events on jobs.
type Events interface {
	// Write creates an event once.
	Write(events.Event)
}

// Options of a Controller. All are required.
type Options struct {
	Client dynamic.Interface
	// Units is the cache of all units. The controller does not run it.
	Units cache.SharedIndexInformer
	Jobs  Jobs
	// Cluster determines what the API server adds to pods.
	Cluster requests.Cluster
	// Serves reports whether the API server serves all of the resources.
	Serves func(gv schema.GroupVersion, resources ...string) (bool, error)
	// Reporter returns a function that is called with the result of each list and watch of a resource.
	Reporter func(schema.GroupVersionResource) lenient.Report
	Events   Events
	Clock    clock.WithTicker
}

// Controller decides the checks.
type Controller struct {
	Options
	checks, configs, requests cache.SharedIndexInformer
	queue                     workqueue.TypedRateLimitingInterface[types.NamespacedName]
	api                       api
	memory                    memory
}

// New returns a controller. Nothing is read or written before Start.
func New(options Options) (*Controller, error) {
	c := &Controller{Options: options, api: api{needed: make(chan struct{})},
		checks:  informerOf(options, always(checks), cache.Indexers{}),
		configs: informerOf(options, always(configs), cache.Indexers{}),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](retryMin, retryMax),
			workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Clock: options.Clock, Name: "provisioning"}),
	}
	c.requests = informerOf(options, c.api.requestsIn, cache.Indexers{byUnit: unitUIDs})
	for _, own := range []cache.SharedIndexInformer{c.checks, c.configs, c.requests} {
		if err := own.SetTransform(slim); err != nil {
			return nil, fmt.Errorf("setting up a cache: %w", err)
		}
	}
	for informer, changed := range map[cache.SharedIndexInformer]func(obj any){
		options.Units: c.unitChanged, c.checks: c.checkChanged, c.configs: func(any) { c.queueAll() }, c.requests: c.requestChanged,
	} {
		if _, err := informer.AddEventHandler(follow.Handler(changed, changed)); err != nil {
			return nil, fmt.Errorf("watching objects of provisioning checks: %w", err)
		}
	}
	return c, nil
}

// always returns a resource whose version is fixed.
func always(resource schema.GroupVersionResource) func() schema.GroupVersionResource {
	return func() schema.GroupVersionResource { return resource }
}

// informerOf returns the cache of a resource. Its version is known only when the cache runs.
func informerOf(options Options, in func() schema.GroupVersionResource, indexers cache.Indexers) cache.SharedIndexInformer {
	resource := in()
	list := func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		return options.Client.Resource(in()).List(ctx, opts)
	}
	watching := func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
		return options.Client.Resource(in()).Watch(ctx, opts)
	}
	from := lenient.Reporting(list, watching, options.Reporter(resource))
	return cache.NewSharedIndexInformerWithOptions(cache.ToListWatcherWithWatchListSemantics(from, options.Client), &unstructured.Unstructured{},
		cache.SharedIndexInformerOptions{Indexers: indexers, ObjectDescription: resource.String()})
}

// slim removes unused fields from a cached object.
func slim(obj any) (any, error) {
	if object, is := obj.(*unstructured.Unstructured); is {
		object.SetManagedFields(nil)
	}
	return obj, nil
}

// Work decides checks until ctx is done.
func (c *Controller) Work(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("controller", "provisioning"))
	var running sync.WaitGroup
	running.Go(func() { c.findTemplates(ctx) })
	for range workers {
		running.Go(func() {
			for c.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	c.queue.ShutDown()
	running.Wait()
	return nil
}

func (c *Controller) next(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	if ctx.Err() != nil {
		return true
	}
	// A step that has started is not cancelled when the program is stopped: the write might
	// be applied anyway, after the next leader has read the objects.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
	defer cancel()
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("queueUnit", key))
	after, err := c.reconcile(ctx, key)
	switch {
	case err == nil:
		c.queue.Forget(key)
		if after > 0 {
			c.queue.AddAfter(key, after)
		}
	case apierrors.IsConflict(err):
		klog.FromContext(ctx).V(3).Info("QueueUnit changed in the meantime", "err", err)
		c.queue.AddRateLimited(key)
	default:
		klog.FromContext(ctx).Error(err, "Failed to decide a provisioning check, retrying")
		c.queue.AddRateLimited(key)
	}
	return true
}
