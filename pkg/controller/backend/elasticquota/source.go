// Package elasticquota feeds the quota backend "elasticquota" with the ElasticQuotaTrees
// of the cluster.
//
// Of all trees one counts: the oldest in the one namespace whose trees do. It is in
// force as long as it is valid; while it is not, its last valid version stays in force.
// The status of the tree that counts says so, and shows how much of it is used.
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
	_ backend.StatusWriter = (*Source)(nil)
	_ backend.Validator    = (*Source)(nil)
)

// Source watches ElasticQuotaTrees.
type Source struct {
	opts   tree.Options
	names  *resources.Names
	client dynamic.NamespaceableResourceInterface
	forest *forest
}

// New makes a Source whose trees have these options.
func New(opts tree.Options) *Source { return &Source{opts: opts} }

// Start begins to watch all trees.
func (s *Source) Start(ctx context.Context, host backend.Host) ([]cache.InformerSynced, error) {
	client, err := dynamic.NewForConfig(host.Config)
	if err != nil {
		return nil, fmt.Errorf("watching quota trees: %w", err)
	}
	trees := quotav1beta1.SchemeGroupVersion.WithResource("elasticquotatrees")
	s.names, s.client, s.forest = host.Names, client.Resource(trees), newForest(host.Names, s.opts)
	// Trees are read one by one: no schema describes a whole tree, and one that a
	// typed client cannot decode would hide all others.
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

// Listed chooses among the trees that there are.
func (s *Source) Listed() backend.Change { return s.forest.start() }

// Problem of the tree that counts.
func (s *Source) Invalid() string { return s.forest.problem }

// Keep keeps nothing: a tree goes by what every unit says.
func (s *Source) Keep(_, _ *schedulingv1alpha1.QueueUnitSpec) {}

// Demand is what the unit's spec.resource says.
func (s *Source) Demand(unit *schedulingv1alpha1.QueueUnit) (quota.Demand, error) {
	return backend.Requests(s.names, unit)
}
