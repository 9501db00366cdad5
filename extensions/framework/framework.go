package framework

import (
	"context"
	"fmt"
	"sync"
	"time"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/pkg/generated/clientset/versioned"
)

// Options of a Framework.
type Options struct {
	// Config to reach the API server with.
	Config *rest.Config
	// Adapters of the kinds that are queued.
	Adapters []Adapter
	// Workers of each kind.
	Workers int
	// Events takes what is told of jobs.
	Events EventSink
	// Clock is the time.
	Clock clock.WithTicker
}

// Framework queues the jobs of all enabled kinds.
type Framework struct {
	opts      Options
	client    versioned.Interface
	discovery discovery.DiscoveryInterface
	units     *unitCache
	classes   PriorityClasses
	// factory makes the cache of PriorityClasses.
	factory     informers.SharedInformerFactory
	reconcilers []*reconciler
}

// New makes a framework. Nothing is read or written before Start.
func New(opts Options) (*Framework, error) {
	client, err := versioned.NewForConfig(opts.Config)
	if err != nil {
		return nil, fmt.Errorf("making a client for QueueUnits: %w", err)
	}
	kube, err := kubernetes.NewForConfig(opts.Config)
	if err != nil {
		return nil, fmt.Errorf("making a client for PriorityClasses: %w", err)
	}
	units, err := newUnitCache(opts.Config)
	if err != nil {
		return nil, err
	}
	f := &Framework{opts: opts, client: client, discovery: kube.Discovery(), units: units}
	f.factory = informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithTransform(slimClass))
	classes := f.factory.Scheduling().V1().PriorityClasses()
	f.classes = listedClasses{classes.Lister()}
	if _, err := classes.Informer().AddEventHandler(handler(f.classChanged, f.classChanged)); err != nil {
		return nil, fmt.Errorf("watching PriorityClasses: %w", err)
	}
	for _, adapter := range opts.Adapters {
		r, err := newReconciler(f, adapter)
		if err != nil {
			return nil, fmt.Errorf("setting up kind %s: %w", adapter.Kind().Kind, err)
		}
		f.reconcilers = append(f.reconcilers, r)
	}
	return f, nil
}

func (f *Framework) classChanged(any) {
	for _, r := range f.reconcilers {
		r.classesChanged()
	}
}

func slimClass(obj any) (any, error) {
	if class, isClass := obj.(*schedulingv1.PriorityClass); isClass {
		class.ManagedFields, class.Annotations, class.Description = nil, nil, ""
	}
	return obj, nil
}

// Start fills the caches and returns when those of all kinds together have. Each
// kind is on its own after that: one that is not served yet is waited for.
func (f *Framework) Start(ctx context.Context) error {
	f.warnIfNothingHolds(ctx)
	f.factory.StartWithContext(ctx)
	go f.units.RunWithContext(ctx)
	for _, r := range f.reconcilers {
		go f.fill(ctx, r)
	}
	classes := f.factory.Scheduling().V1().PriorityClasses().Informer()
	if !cache.WaitForCacheSync(ctx.Done(), f.units.HasSynced, classes.HasSynced) {
		return ctx.Err()
	}
	return nil
}

// Work queues jobs until ctx is done.
func (f *Framework) Work(ctx context.Context) error {
	var running sync.WaitGroup
	for _, r := range f.reconcilers {
		ctx := klog.NewContext(ctx, klog.FromContext(ctx).WithValues("kind", r.kind.Kind))
		running.Go(func() { r.run(ctx, f.opts.Workers) })
	}
	<-ctx.Done()
	running.Wait()
	return nil
}

// fill runs the cache of a kind once the API server serves it.
func (f *Framework) fill(ctx context.Context, r *reconciler) {
	kind := r.adapter.Kind()
	backoff := wait.Backoff{Duration: time.Second, Factor: 1.5, Jitter: 0.1, Steps: 8, Cap: 10 * time.Second}
	missing := false
	err := backoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		served, err := f.serves(kind.GroupVersion().WithResource(kind.Resource))
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Whether a kind is served is not known yet", "kind", kind.Kind, "err", err)
			return false, nil
		}
		if !served && !missing {
			missing = true
			klog.FromContext(ctx).Info("A kind is not served: its CRD is waited for", "kind", kind.Kind, "resource", kind.Resource, "groupVersion", kind.GroupVersion().String())
		}
		return served, nil
	})
	if err != nil {
		return
	}
	r.cached.RunWithContext(ctx)
}

// serves asks the API server whether it knows the resource.
func (f *Framework) serves(resource schema.GroupVersionResource) (bool, error) {
	list, err := f.discovery.ServerResourcesForGroupVersion(resource.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking for the resources of %s: %w", resource.GroupVersion(), err)
	}
	for _, served := range list.APIResources {
		if served.Name == resource.Resource {
			return true, nil
		}
	}
	return false, nil
}

// warnIfNothingHolds says at start what an older cluster cannot do.
func (f *Framework) warnIfNothingHolds(ctx context.Context) {
	policies := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicies"}
	served, err := f.serves(policies)
	if err != nil || served {
		return
	}
	klog.FromContext(ctx).Info("Warning: this cluster has no MutatingAdmissionPolicy (Kubernetes 1.36): a job that carries only the annotation"+
		" is suspended right after it was created, and some of its pods may appear before; jobs created suspended are not affected",
		"annotation", SuspendAnnotation)
}
