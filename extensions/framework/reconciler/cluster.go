package reconciler

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	nodelisters "k8s.io/client-go/listers/node/v1"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1"
	"k8s.io/client-go/tools/cache"
)

// listedCluster is the decision.Cluster that reads from informers.
type listedCluster struct {
	listedClasses
	runtimeClasses nodelisters.RuntimeClassLister
	limitRanges    corelisters.LimitRangeLister
	factory        informers.SharedInformerFactory
	informers      []cache.SharedIndexInformer
}

// newCluster calls changed with each object that may change the requests of units: a
// class, or a LimitRange, which affects only its namespace.
func newCluster(kube kubernetes.Interface, changed func(obj any)) (*listedCluster, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithTransform(slimClusterObject))
	classes, runtimeClasses, limitRanges := factory.Scheduling().V1().PriorityClasses(), factory.Node().V1().RuntimeClasses(), factory.Core().V1().LimitRanges()
	c := &listedCluster{
		listedClasses: listedClasses{classes.Lister()}, runtimeClasses: runtimeClasses.Lister(), limitRanges: limitRanges.Lister(),
		factory:   factory,
		informers: []cache.SharedIndexInformer{classes.Informer(), runtimeClasses.Informer(), limitRanges.Informer()},
	}
	for _, informer := range c.informers {
		if _, err := informer.AddEventHandler(handler(changed, changed)); err != nil {
			return nil, fmt.Errorf("watching PriorityClasses, RuntimeClasses and LimitRanges: %w", err)
		}
	}
	return c, nil
}

func (c *listedCluster) synced() []cache.InformerSynced {
	synced := make([]cache.InformerSynced, len(c.informers))
	for i, informer := range c.informers {
		synced[i] = informer.HasSynced
	}
	return synced
}

// Overhead returns the overhead of the pods of a RuntimeClass.
func (c *listedCluster) Overhead(name string) (corev1.ResourceList, bool) {
	class, err := c.runtimeClasses.Get(name)
	if err != nil {
		return nil, false
	}
	if class.Overhead == nil {
		return nil, true
	}
	return class.Overhead.PodFixed, true
}

// LimitRanges returns the LimitRanges of a namespace, sorted by name.
func (c *listedCluster) LimitRanges(namespace string) []*corev1.LimitRange {
	list, err := c.limitRanges.LimitRanges(namespace).List(labels.Everything())
	if err != nil {
		return nil
	}
	slices.SortFunc(list, func(a, b *corev1.LimitRange) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

func slimClusterObject(obj any) (any, error) {
	switch o := obj.(type) {
	case *schedulingv1.PriorityClass:
		o.ManagedFields, o.Annotations, o.Description = nil, nil, ""
	case *nodev1.RuntimeClass:
		o.ManagedFields, o.Annotations, o.Scheduling = nil, nil, nil
	case *corev1.LimitRange:
		o.ManagedFields, o.Annotations = nil, nil
	}
	return obj, nil
}

// listedClasses reads classes from an informer.
type listedClasses struct {
	lister schedulinglisters.PriorityClassLister
}

func (c listedClasses) Value(name string) (int32, bool) {
	class, err := c.lister.Get(name)
	if err != nil {
		return 0, false
	}
	return class.Value, true
}

// Default returns the global default class. If there are several, it is the one with
// the lowest value, as in the API server.
func (c listedClasses) Default() (string, int32, bool) {
	classes, err := c.lister.List(labels.Everything())
	if err != nil {
		return "", 0, false
	}
	var least *schedulingv1.PriorityClass
	for _, class := range classes {
		if class.GlobalDefault && (least == nil || class.Value < least.Value || class.Value == least.Value && class.Name < least.Name) {
			least = class
		}
	}
	if least == nil {
		return "", 0, false
	}
	return least.Name, least.Value, true
}
