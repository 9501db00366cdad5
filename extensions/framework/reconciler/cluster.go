package reconciler

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	nodelisters "k8s.io/client-go/listers/node/v1"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1"
	"k8s.io/client-go/tools/cache"

	"kube-queue.dev/kube-queue/pkg/follow"
	"kube-queue.dev/kube-queue/pkg/requests"
)

// listedCluster is the decision.Cluster that reads from informers.
type listedCluster struct {
	priorityClasses schedulinglisters.PriorityClassLister
	runtimeClasses  nodelisters.RuntimeClassLister
	limitRanges     corelisters.LimitRangeLister
	factory         informers.SharedInformerFactory
	informers       []cache.SharedIndexInformer
	rules           requests.Rules
	// claims is nil if no devices of classes are counted.
	claims *listedClaims
}

// newCluster calls changed with each object that can change the requests of units: a class, or a LimitRange or claim,
// which affects only its namespace.
func newCluster(kube kubernetes.Interface, rules requests.Rules, changed func(metav1.Object)) (*listedCluster, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithTransform(slimClusterObject))
	classes, runtimeClasses, limitRanges := factory.Scheduling().V1().PriorityClasses(), factory.Node().V1().RuntimeClasses(), factory.Core().V1().LimitRanges()
	c := &listedCluster{
		priorityClasses: classes.Lister(), runtimeClasses: runtimeClasses.Lister(), limitRanges: limitRanges.Lister(),
		rules: rules, factory: factory,
		informers: []cache.SharedIndexInformer{classes.Informer(), runtimeClasses.Informer(), limitRanges.Informer()},
	}
	for _, informer := range c.informers {
		if _, err := informer.AddEventHandler(follow.Handler(changed, changed)); err != nil {
			return nil, fmt.Errorf("watching PriorityClasses, RuntimeClasses and LimitRanges: %w", err)
		}
	}
	if len(rules.Classes) == 0 {
		return c, nil
	}
	var err error
	c.claims, err = newClaims(kube, changed)
	return c, err
}

// start starts to fill the caches and returns functions that report whether they are filled.
func (c *listedCluster) start(ctx context.Context) []cache.InformerSynced {
	c.factory.StartWithContext(ctx)
	if c.claims == nil {
		return syncedBy(c.informers)
	}
	c.claims.factory.StartWithContext(ctx)
	return append(syncedBy(c.informers), c.claims.synced...)
}

// Rules returns the administrator's rules for the requests of pods, with the resources that DeviceClasses provide.
func (c *listedCluster) Rules() requests.Rules {
	if c.claims == nil {
		return c.rules
	}
	classes, err := c.claims.classes.List(labels.Everything())
	if err != nil {
		return c.rules
	}
	return c.rules.WithClasses(classes)
}

func syncedBy(informers []cache.SharedIndexInformer) []cache.InformerSynced {
	synced := make([]cache.InformerSynced, len(informers))
	for i, informer := range informers {
		synced[i] = informer.HasSynced
	}
	return synced
}

func (c *listedCluster) RuntimeClass(name string) (*nodev1.RuntimeClass, bool) {
	class, err := c.runtimeClasses.Get(name)
	return class, err == nil
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
	if object, isObject := obj.(metav1.Object); isObject {
		object.SetManagedFields(nil)
		object.SetAnnotations(nil)
	}
	if class, isClass := obj.(*schedulingv1.PriorityClass); isClass {
		class.Description = ""
	}
	return obj, nil
}

func (c *listedCluster) Value(name string) (int32, bool) {
	class, err := c.priorityClasses.Get(name)
	if err != nil {
		return 0, false
	}
	return class.Value, true
}

// Default returns the global default class. If there are several, it is the one with
// the lowest value, as in the API server.
func (c *listedCluster) Default() (string, int32, bool) {
	classes, err := c.priorityClasses.List(labels.Everything())
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
