// Package elasticquota feeds the quota backend "elasticquota" with the ElasticQuotaTrees of the
// cluster.
//
// Only the oldest tree in namespace kube-system is used. If it is invalid, its last valid version
// stays in force. The status of the tree reports this and shows how much of it is used.
package elasticquota

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
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
	opts   tree.Options
	pods   PodOptions
	names  *resources.Names
	client dynamic.NamespaceableResourceInterface
	forest *forest
}

// New returns a Source whose trees have the options, and that counts pods as the other options say.
func New(opts tree.Options, pods PodOptions) *Source { return &Source{opts: opts, pods: pods} }

// Start begins to watch all trees.
func (s *Source) Start(ctx context.Context, host backend.Host) ([]cache.InformerSynced, error) {
	client, err := dynamic.NewForConfig(host.Config)
	if err != nil {
		return nil, fmt.Errorf("watching quota trees: %w", err)
	}
	trees := quotav1beta1.SchemeGroupVersion.WithResource("elasticquotatrees")
	s.names, s.client, s.forest = host.Names, client.Resource(trees), newForest(host.Names, s.opts)
	// The client is dynamic because no schema describes a complete tree, and a tree that a typed client
	// cannot decode would hide all others.
	informer := dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(trees).Informer()
	synced, err := backend.Follow(informer,
		func(o any) {
			key, object := backend.Key(o), o.(*unstructured.Unstructured)
			host.Take(func() backend.Change { return s.forest.set(key, object) })
		},
		func(key string, _ any) {
			host.Take(func() backend.Change { return s.forest.set(key, nil) })
		})
	if err != nil {
		return nil, fmt.Errorf("watching quota trees: %w", err)
	}
	go informer.RunWithContext(ctx)
	return []cache.InformerSynced{synced}, nil
}

// Listed selects the tree to use after all trees were listed.
func (s *Source) Listed() backend.Change { return s.forest.start() }

// Report shows on the tree in use which of its limits are exceeded.
func (s *Source) Report(excesses []quota.Excess) backend.Change { return s.forest.report(excesses) }

// Rebuild returns the tree in force with nothing charged to it.
func (s *Source) Rebuild() backend.Change { return s.forest.rebuild() }

// Invalid returns why the tree in use is not in force; empty if it is.
func (s *Source) Invalid() string { return s.forest.problem }

// Keep copies nothing, because a tree uses only fields that are always kept.
func (s *Source) Keep(_, _ *schedulingv1alpha1.QueueUnitSpec) {}

// Demand returns the demand from spec.resource of the unit.
func (s *Source) Demand(unit *schedulingv1alpha1.QueueUnit) (quota.Demand, error) {
	return backend.Requests(s.names, unit)
}
