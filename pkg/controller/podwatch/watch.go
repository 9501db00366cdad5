// Package podwatch watches the pods of the cluster, and the objects between pods and their jobs, for the core.
//
// A pod belongs to the object that controls it. Between a pod and its job there can be a Job (of the submitter of a
// RayJob, of a JobSet, or of the launcher of an MPIJob), a RayCluster (of a RayJob), a Job and its JobSet (of a
// TrainJob), or another pod (a Spark driver). Only the metadata of these objects is watched. If the controller of an
// object was deleted and its dependents were orphaned, the object belongs to the job that its labels name.
//
// Anyone who can write a pod can write all of these fields. So a pod stays with the first job that it counted for
// (package pods). To be exempt from charges, it needs a DaemonSet that exists with its UID in a namespace that is not
// managed.
package podwatch

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/follow"
	"kube-queue.dev/kube-queue/pkg/requests"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// Watch watches pods and their owners.
type Watch struct {
	rules  backend.PodRules
	clock  clock.Clock
	put    func(func() scheduler.Event)
	ending *ending
	config *rest.Config
	// again has the keys of the pods to count again.
	again sync.Map
	// pods and kinds are the informers. kinds are the objects between pods and jobs, and DaemonSets.
	pods  cache.SharedIndexInformer
	kinds []*ownerKind
	// namespaces is nil if managed namespaces make no difference. unmanaged are the namespaces known to be unmanaged.
	// Only the goroutine that decides uses it.
	namespaces *ownerKind
	unmanaged  map[string]bool
}

// New returns a Watch. put makes the goroutine that decides call the function and apply the event,
// which may be nil, in the order of the calls. It never blocks.
func New(config *rest.Config, rules backend.PodRules, c clock.Clock, put func(func() scheduler.Event)) (*Watch, error) {
	w := &Watch{rules: rules, clock: c, put: put, config: config, unmanaged: map[string]bool{}}
	w.ending = newEnding(c, w.podEnded)
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	w.pods = informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		if !rules.CountEnded {
			o.FieldSelector = requests.NotEnded
		}
	})).Core().V1().Pods().Informer()
	if err := w.pods.SetTransform(w.slim); err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	if err := w.pods.AddIndexers(cache.Indexers{byDevices: devicesOf}); err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	if w.kinds, w.namespaces, err = newOwnerKinds(config, rules.Strays); err != nil {
		return nil, err
	}
	return w, nil
}

// Start starts the watches, which run until the context ends, and returns without waiting. Each of
// synced reports whether all existing objects of a kind were put.
func (w *Watch) Start(ctx context.Context) (synced []cache.InformerSynced, err error) {
	run := func(what string, informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) (cache.InformerSynced, error) {
		registration, err := informer.AddEventHandler(handler)
		if err != nil {
			return nil, fmt.Errorf("watching %s: %w", what, err)
		}
		go informer.RunWithContext(ctx)
		return registration.HasSynced, nil
	}
	if synced, err = w.watchDevices(ctx); err != nil {
		return nil, err
	}
	has, err := run("pods", w.pods, follow.Changes(samePod, w.podSeen, w.podGone))
	if err != nil {
		return nil, err
	}
	synced = append(synced, has)
	all := w.kinds
	if w.namespaces != nil {
		all = append(slices.Clone(all), w.namespaces)
	}
	for _, kind := range all {
		handler := follow.Changes(sameOwner, func(o *slim) { w.ownerSeen(kind, o) }, func(o *slim) { w.ownerGone(kind, o) })
		if kind == w.namespaces {
			handler = follow.Changes(sameNamespace, w.namespaceSeen, w.namespaceGone)
		}
		has, err := run(kind.Resource, kind.informer, handler)
		if err != nil {
			return nil, err
		}
		synced = append(synced, func() bool { return has() || kind.absent() })
	}
	go w.ending.run(ctx)
	return synced, nil
}

// slim reduces a pod to the stored part.
func (w *Watch) slim(object any) (any, error) {
	if p, is := object.(*corev1.Pod); is {
		return w.slimPod(p), nil
	}
	return object, nil
}
