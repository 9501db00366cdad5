package reconciler

import (
	"context"
	"fmt"
	"slices"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/pkg/clientset"
	"kube-queue.dev/kube-queue/pkg/metrics"
	"kube-queue.dev/kube-queue/pkg/requests"
)

// Options of a Framework.
type Options struct {
	// Config of the connection to the API server.
	Config *rest.Config
	// Adapters of the kinds that are queued.
	Adapters []framework.Adapter
	// Annotated are adapters of more queued kinds, whose jobs are marked only by the annotation.
	Annotated []framework.Adapter
	// Others are adapters of the kinds that are not queued. Marked jobs of them get an event.
	Others []framework.Adapter
	// Pods are the adapters of gated pods; empty if pods are not queued.
	Pods []framework.Adapter
	// Webhook: the program serves the webhook that holds jobs.
	Webhook bool
	// Namespace has the Lease of the controller; empty if the controller is not watched.
	Namespace string
	// Workers of each kind.
	Workers int
	// Rules for the requests of pods.
	Rules requests.Rules
	// Events takes the events on jobs.
	Events EventSink
	// Clock is the source of time.
	Clock clock.WithTicker
	// Metrics counts; it can be nil.
	Metrics *metrics.Extensions
}

// Framework queues the jobs of all enabled kinds.
type Framework struct {
	Options
	client *clientset.Scheduling
	// metadata reads objects if only their metadata matters.
	metadata  metadata.Interface
	discovery discovery.DiscoveryInterface
	kube      kubernetes.Interface
	// pods has the gated pods; nil if pods are not queued.
	pods        *gatedPods
	units       *unitCache
	cluster     *listedCluster
	reconcilers []*reconciler
	// controller knows whether a controller runs, and kueue whether Kueue is installed.
	controller *controllerLease
	kueue      *kueue
}

// New returns a framework. Nothing is read or written before Start.
func New(opts Options) (*Framework, error) {
	if opts.Metrics == nil {
		opts.Metrics = metrics.NewExtensions(metrics.New(metrics.ExtensionsProgram, ""))
	}
	client, err := clientset.NewForConfig(opts.Config)
	if err != nil {
		return nil, fmt.Errorf("creating a client for QueueUnits: %w", err)
	}
	kube, err := kubernetes.NewForConfig(opts.Config)
	if err != nil {
		return nil, fmt.Errorf("creating a Kubernetes client: %w", err)
	}
	objects, err := metadata.NewForConfig(opts.Config)
	if err != nil {
		return nil, fmt.Errorf("creating a client for metadata: %w", err)
	}
	f := &Framework{Options: opts, client: client.SchedulingV1alpha1(), metadata: objects, discovery: kube.Discovery(), kube: kube, kueue: &kueue{groups: kube.Discovery()}}
	f.controller = &controllerLease{get: func(ctx context.Context) (*coordinationv1.Lease, error) {
		return kube.CoordinationV1().Leases(opts.Namespace).Get(ctx, controllerName, metav1.GetOptions{})
	}}
	if f.units, err = newUnitCache(opts.Config, f.Reporter(v1alpha1.SchemeGroupVersion.WithResource("queueunits"))); err != nil {
		return nil, err
	}
	if f.cluster, err = newCluster(kube, opts.Rules, f.clusterChanged); err != nil {
		return nil, err
	}
	for i, adapter := range slices.Concat(opts.Adapters, opts.Annotated, opts.Pods) {
		r, err := newReconciler(f, adapter, i >= len(opts.Adapters))
		if err != nil {
			return nil, fmt.Errorf("setting up kind %s: %w", adapter.Kind().Kind, err)
		}
		f.reconcilers = append(f.reconcilers, r)
	}
	for _, r := range f.reconcilers {
		if err := r.watchGrowth(); err != nil {
			return nil, fmt.Errorf("watching the pods of kind %s: %w", r.kind.Kind, err)
		}
	}
	return f, nil
}

// clusterChanged queues all jobs whose units can change with the object.
func (f *Framework) clusterChanged(object metav1.Object) {
	for _, r := range f.reconcilers {
		r.clusterChanged(object.GetNamespace())
	}
}

// Start fills the caches and returns when the shared caches have synced. The cache of each kind is filled separately,
// so that a kind that is not served yet delays only itself.
func (f *Framework) Start(ctx context.Context) error {
	f.warnIfNothingHolds(ctx)
	synced := f.cluster.start(ctx)
	go f.units.RunWithContext(ctx)
	for _, r := range f.reconcilers {
		if r.gate == nil {
			go f.fill(ctx, r)
		}
	}
	if f.pods != nil {
		go f.pods.RunWithContext(ctx)
	}
	if !cache.WaitForCacheSync(ctx.Done(), append(synced, f.units.HasSynced)...) {
		return ctx.Err()
	}
	return nil
}

// Work queues jobs until ctx is done.
func (f *Framework) Work(ctx context.Context) error {
	var running sync.WaitGroup
	for _, r := range f.reconcilers {
		ctx := klog.NewContext(ctx, klog.FromContext(ctx).WithValues("kind", r.kind.Kind))
		running.Go(func() { r.run(ctx, f.Workers) })
	}
	running.Go(func() { f.warnOthers(ctx) })
	if f.Namespace != "" {
		running.Go(func() { f.watchController(ctx) })
	}
	<-ctx.Done()
	running.Wait()
	return nil
}
