package framework

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/pkg/generated/clientset/versioned"
	"kube-queue.dev/kube-queue/pkg/metrics"
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
	// Metrics counts, where somebody looks.
	Metrics *metrics.Extensions
}

// Framework queues the jobs of all enabled kinds.
type Framework struct {
	opts        Options
	client      versioned.Interface
	discovery   discovery.DiscoveryInterface
	units       *unitCache
	cluster     *listedCluster
	reconcilers []*reconciler
}

// New makes a framework. Nothing is read or written before Start.
func New(opts Options) (*Framework, error) {
	if opts.Metrics == nil {
		opts.Metrics = metrics.NewExtensions(metrics.New(metrics.ExtensionsProgram, ""))
	}
	client, err := versioned.NewForConfig(opts.Config)
	if err != nil {
		return nil, fmt.Errorf("making a client for QueueUnits: %w", err)
	}
	kube, err := kubernetes.NewForConfig(opts.Config)
	if err != nil {
		return nil, fmt.Errorf("making a client for what the cluster adds to pods: %w", err)
	}
	units, err := newUnitCache(opts.Config)
	if err != nil {
		return nil, err
	}
	f := &Framework{opts: opts, client: client, discovery: kube.Discovery(), units: units}
	if f.cluster, err = newCluster(kube, f.clusterChanged); err != nil {
		return nil, err
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

// clusterChanged has all jobs looked at whose units the object may change.
func (f *Framework) clusterChanged(obj any) {
	object, isObject := obj.(metav1.Object)
	if !isObject {
		return
	}
	for _, r := range f.reconcilers {
		r.clusterChanged(object.GetNamespace())
	}
}

// Start fills the caches and returns when those of all kinds together have. Each
// kind is on its own after that: one that is not served yet is waited for.
func (f *Framework) Start(ctx context.Context) error {
	f.warnIfNothingHolds(ctx)
	f.cluster.factory.StartWithContext(ctx)
	go f.units.RunWithContext(ctx)
	for _, r := range f.reconcilers {
		go f.fill(ctx, r)
	}
	if !cache.WaitForCacheSync(ctx.Done(), append(f.cluster.synced(), f.units.HasSynced)...) {
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
	versions := strings.Join(kind.versions(), " or ")
	err := backoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		_, served, err := f.serves(kind)
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Whether a kind is served is not known yet", "kind", kind.Kind, "err", err)
			return false, nil
		}
		f.opts.Metrics.Missing(kind.Name, !served)
		if !served && !missing {
			missing = true
			klog.FromContext(ctx).Info("A kind is not served: its CRD is waited for", "kind", kind.Kind, "resource", kind.Resource, "group", kind.Group, "version", versions)
		}
		return served, nil
	})
	if err != nil {
		return
	}
	if r.remains != nil {
		go r.remains.RunWithContext(ctx)
	}
	r.cached.RunWithContext(ctx)
}

// servesAll asks the API server whether it knows all of the resources.
func (f *Framework) servesAll(gv schema.GroupVersion, resources []string) (bool, error) {
	list, err := f.discovery.ServerResourcesForGroupVersion(gv.String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking for the resources of %s: %w", gv, err)
	}
	for _, resource := range resources {
		if !slices.ContainsFunc(list.APIResources, func(served metav1.APIResource) bool { return served.Name == resource }) {
			return false, nil
		}
	}
	return true, nil
}

// warnIfNothingHolds says at start what an older cluster cannot do.
func (f *Framework) warnIfNothingHolds(ctx context.Context) {
	served, err := f.servesAll(schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}, []string{"mutatingadmissionpolicies"})
	if err != nil || served {
		return
	}
	klog.FromContext(ctx).Info("Warning: this cluster has no MutatingAdmissionPolicy (Kubernetes 1.36): a job that carries only the annotation"+
		" is suspended right after it was created, and some of its pods may appear before; jobs created suspended are not affected",
		"annotation", SuspendAnnotation)
}
