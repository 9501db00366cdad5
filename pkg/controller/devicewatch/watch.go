// Package devicewatch watches the objects that determine how many devices pods have: the claims of the pods, and the
// DeviceClasses, which provide extended resources. If no class is mapped to a resource, it watches nothing and needs
// no permissions.
package devicewatch

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"kube-queue.dev/kube-queue/pkg/follow"
	"kube-queue.dev/kube-queue/pkg/requests"
)

// Watch counts the devices of pods.
type Watch struct {
	// mapped are the rules without extended resources. rules are the rules in force.
	mapped requests.Rules
	rules  atomic.Pointer[requests.Rules]
	// claims has each claim as *claim; nil before Start or if nothing is watched.
	claims cache.Store

	mu       sync.Mutex
	renamed  []func()
	reported map[string]bool
}

// maxReported limits the reports about resources that cannot be counted, because users can name any.
const maxReported = 64

// New returns a Watch that uses the rules.
func New(rules requests.Rules) *Watch {
	w := &Watch{mapped: rules, reported: map[string]bool{}}
	w.rules.Store(&rules)
	return w
}

// Renamed makes the Watch call the function whenever the extended resources of DeviceClasses have changed. Call it
// before Start.
func (w *Watch) Renamed(call func()) { w.renamed = append(w.renamed, call) }

// Rules returns the rules with the extended resources of the DeviceClasses.
func (w *Watch) Rules() requests.Rules { return *w.rules.Load() }

// Count returns what the pod requests, and the devices that it can share with other pods. It logs each resource that it
// cannot count once.
func (w *Watch) Count(pod *requests.PodDevices) (own corev1.ResourceList, shared map[string]requests.SharedDevices) {
	own, shared, unmapped := w.Rules().Count(pod, w.claimed)
	if unmapped != nil {
		w.report(pod.Namespace, unmapped)
	}
	return own, shared
}

func (w *Watch) report(namespace string, unmapped error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	message := unmapped.Error()
	if !w.reported[message] && len(w.reported) < maxReported {
		w.reported[message] = true
		klog.Background().Info("Warning: a pod requests devices that are charged only under the name by which it requests them", "namespace", namespace, "reason", message)
	}
}

func (w *Watch) claimed(namespace, name string) requests.Claimed {
	if w.claims == nil {
		return requests.Claimed{}
	}
	object, _, _ := w.claims.GetByKey(namespace + "/" + name)
	if c, is := object.(*claim); is {
		return c.use
	}
	return requests.Claimed{}
}

// claim is the stored part of a ResourceClaim.
type claim struct {
	metav1.ObjectMeta
	use requests.Claimed
}

// Start starts the watches, which run until the context ends, and returns without waiting. It calls changed with each
// claim whose devices have changed. Each of synced reports whether all existing objects of a kind are known.
func (w *Watch) Start(ctx context.Context, config *rest.Config, changed func(namespace, name string)) (synced []cache.InformerSynced, err error) {
	if len(w.mapped.Classes) == 0 {
		return nil, nil
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("watching claims: %w", err)
	}
	api := informers.NewSharedInformerFactory(client, 0).Resource().V1()
	classes, claims := api.DeviceClasses().Informer(), api.ResourceClaims().Informer()
	w.claims = claims.GetStore()
	has, err := run(ctx, "ResourceClaims", claims, w.slim, claimHandler(changed))
	if err != nil {
		return nil, err
	}
	knows, err := run(ctx, "DeviceClasses", classes, slimClass, w.classHandler(classes.GetStore()))
	return []cache.InformerSynced{has, knows}, err
}

// run runs an informer. If the API server does not serve its kind, the informer has no objects.
func run(ctx context.Context, what string, informer cache.SharedIndexInformer, transform cache.TransformFunc, handler cache.ResourceEventHandler) (cache.InformerSynced, error) {
	synced, err := follow.IfServed(informer, handler, func(ctx context.Context) {
		klog.FromContext(ctx).Info("Warning: the API server does not serve what setting devices.classes counts (Kubernetes 1.34 or later); trying again later", "kind", what)
	})
	if err == nil {
		err = informer.SetTransform(transform)
	}
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", what, err)
	}
	go informer.RunWithContext(ctx)
	return synced, nil
}

// slim reduces a claim to the stored part.
func (w *Watch) slim(object any) (any, error) {
	if c, is := object.(*resourcev1.ResourceClaim); is {
		return &claim{metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name, UID: c.UID, ResourceVersion: c.ResourceVersion}, w.mapped.OfClaim(c)}, nil
	}
	return object, nil
}

// slimClass keeps only the name of the resource that a class provides.
func slimClass(object any) (any, error) {
	if c, is := object.(*resourcev1.DeviceClass); is {
		c.ManagedFields, c.Annotations = nil, nil
		c.Spec = resourcev1.DeviceClassSpec{ExtendedResourceName: c.Spec.ExtendedResourceName}
	}
	return object, nil
}

func claimHandler(changed func(namespace, name string)) cache.ResourceEventHandler {
	report := func(c *claim) { changed(c.Namespace, c.Name) }
	return follow.Changes(func(before, now *claim) bool { return equality.Semantic.DeepEqual(before.use, now.use) }, report, report)
}

// classHandler applies the extended resources of all classes after each change of one.
func (w *Watch) classHandler(store cache.Store) cache.ResourceEventHandler {
	apply := func(any) {
		var classes []*resourcev1.DeviceClass
		for _, object := range store.List() {
			if class, is := object.(*resourcev1.DeviceClass); is {
				classes = append(classes, class)
			}
		}
		w.apply(classes)
	}
	return follow.Handler(apply, apply)
}

func (w *Watch) apply(classes []*resourcev1.DeviceClass) {
	before, rules := w.Rules(), w.mapped.WithClasses(classes)
	if rules.SameNames(before) {
		return
	}
	w.rules.Store(&rules)
	for _, call := range w.renamed {
		call()
	}
}
