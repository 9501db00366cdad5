// Package elasticquota feeds the quota backend "elasticquota" with the ElasticQuotaTrees of the cluster.
//
// Only the oldest tree in namespace kube-system is used. If it is invalid, the last valid tree stays in force. A
// ControllerRevision keeps that tree for a restart. The status of the tree in use reports this and its usage. Each tree
// is read as an unstructured object, and all its problems are reported together. With a typed client, one unreadable
// quantity would fail the list and hide every tree.
package elasticquota

import (
	"context"
	"fmt"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/controller/codec"
	"kube-queue.dev/kube-queue/pkg/controller/devicewatch"
	"kube-queue.dev/kube-queue/pkg/follow"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/quota/tree/manifest"
	"kube-queue.dev/kube-queue/pkg/resources"
)

var (
	_ backend.StatusWriter   = (*Source)(nil)
	_ backend.Validator      = (*Source)(nil)
	_ backend.Rebuilder      = (*Source)(nil)
	_ backend.ExcessReporter = (*Source)(nil)
)

// Source watches ElasticQuotaTrees.
type Source struct {
	opts tree.Options
	pods PodOptions
	// devices watches the devices of pods.
	devices *devicewatch.Watch
	names   *resources.Names
	client  dynamic.NamespaceableResourceInterface
	forest  *forest
	keeper  *keeper
	// inventory collects facts about the cluster. seen identifies the version of the tree that it follows.
	inventory *inventory
	seen      string
}

// New returns a Source for trees with these options that counts pods by these PodOptions.
func New(opts tree.Options, pods PodOptions) *Source {
	return &Source{opts: opts, pods: pods, devices: devicewatch.New(pods.Rules)}
}

// Start starts to watch all trees.
func (s *Source) Start(ctx context.Context, host backend.Host) ([]cache.InformerSynced, error) {
	client, err := dynamic.NewForConfig(host.Config)
	if err != nil {
		return nil, fmt.Errorf("watching quota trees: %w", err)
	}
	trees := quotav1beta1.SchemeGroupVersion.WithResource("elasticquotatrees")
	s.names, s.client, s.forest = host.Names, client.Resource(trees), newForest(host.Names, s.opts, host.Clock.Now)
	s.keeper = newKeeper(client.Resource(revisionResource).Namespace(host.Namespace), host.Namespace, host.Clock, host.Moving, func(err error) {
		host.Take(func() backend.Change { return s.forest.notKept(err) })
	})
	s.inventory = newInventory(host.Clock, s.pods.Rules, func(cluster tree.Cluster) {
		host.Take(func() backend.Change { return s.forest.know(cluster) })
	})
	// The client is dynamic because no schema describes a complete tree.
	informer := dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(trees).Informer()
	synced, err := follow.Objects(informer,
		func(tree *unstructured.Unstructured) {
			host.Take(func() backend.Change { return s.set(keyOf(tree), tree) })
		},
		func(last *unstructured.Unstructured) {
			host.Take(func() backend.Change { return s.set(keyOf(last), nil) })
		})
	if err != nil {
		return nil, fmt.Errorf("watching quota trees: %w", err)
	}
	recalled, err := s.watchRevisions(ctx, client, host)
	if err != nil {
		return nil, fmt.Errorf("watching ControllerRevisions in namespace %s: %w", host.Namespace, err)
	}
	if err := s.inventory.start(ctx, host.Config); err != nil {
		return nil, err
	}
	go informer.RunWithContext(ctx)
	go s.keeper.run(ctx)
	return []cache.InformerSynced{synced, recalled}, nil
}

// watchRevisions watches the ControllerRevisions that keep the last valid tree. It passes those that exist at the start
// to the forest. After a later change, the keeper restores what it wants. A controller that may not read them works
// without them.
func (s *Source) watchRevisions(ctx context.Context, client dynamic.Interface, host backend.Host) (cache.InformerSynced, error) {
	informer := dynamicinformer.NewFilteredDynamicInformer(client, revisionResource, host.Namespace, 0, cache.Indexers{},
		func(list *metav1.ListOptions) { list.LabelSelector = revisionSelector }).Informer()
	var forbidden atomic.Bool
	if err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		if apierrors.IsForbidden(err) {
			forbidden.Store(true)
		}
		cache.DefaultWatchErrorHandler(ctx, r, err)
	}); err != nil {
		return nil, err
	}
	synced, err := follow.Objects(informer,
		func(revision *unstructured.Unstructured) {
			host.Take(func() backend.Change {
				s.forest.found(revision)
				return backend.Change{}
			})
			s.keeper.look()
		},
		func(*unstructured.Unstructured) { s.keeper.look() })
	if err != nil {
		return nil, err
	}
	go informer.RunWithContext(ctx)
	return func() bool { return synced() || forbidden.Load() }, nil
}

func keyOf(tree *unstructured.Unstructured) string { return tree.GetNamespace() + "/" + tree.GetName() }

// set processes a new or changed tree, or a deletion if object is nil.
func (s *Source) set(key string, object *unstructured.Unstructured) backend.Change {
	change := s.forest.set(key, object)
	s.follow()
	return change
}

// Listed selects the tree to use after all trees are listed.
func (s *Source) Listed() backend.Change {
	change := s.forest.start()
	s.follow()
	return change
}

// follow passes the tree to the keeper and the inventory.
func (s *Source) follow() {
	s.keeper.want(s.forest.wanted())
	chosen := s.forest.chosen
	if chosen == nil {
		if s.seen != "" {
			s.seen = ""
			s.inventory.follow(nil)
		}
		return
	}
	if version := fmt.Sprintf("%s/%d", chosen.GetUID(), chosen.GetGeneration()); version != s.seen {
		s.seen = version
		s.inventory.follow(new(manifest.Root(chosen)))
	}
}

// Report shows the exceeded limits on the tree in use.
func (s *Source) Report(excesses []quota.Excess) backend.Change { return s.forest.report(excesses) }

// Rebuild returns the tree in force with nothing charged to it.
func (s *Source) Rebuild() backend.Change { return s.forest.rebuild() }

// Invalid returns why the tree in use is not in force; empty if it is.
func (s *Source) Invalid() string { return s.forest.problem }

// Keep copies nothing, because a tree uses only fields that are always kept.
func (s *Source) Keep(_, _ *schedulingv1alpha1.QueueUnitSpec) {}

// Demand returns the demand from spec.resource of the unit.
func (s *Source) Demand(unit *schedulingv1alpha1.QueueUnit) (quota.Demand, error) {
	return codec.Requests(s.names, unit)
}

// DemandIn returns a Demand for a copy.
func (*Source) DemandIn(names *resources.Names, _ quota.Explainer) func(*schedulingv1alpha1.QueueUnit) (quota.Demand, error) {
	return func(unit *schedulingv1alpha1.QueueUnit) (quota.Demand, error) { return codec.Requests(names, unit) }
}
