package autoscaler

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	provisioningv1 "k8s.io/autoscaler/cluster-autoscaler/apis/provisioningrequest/autoscaling.x-k8s.io/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// Resource is the resource of ProvisioningRequests.
var Resource = provisioningv1.SchemeGroupVersion.WithResource("provisioningrequests")

// Autoscaler answers ProvisioningRequests as the test says.
type Autoscaler struct {
	dynamic dynamic.Interface
	kube    kubernetes.Interface
	queue   workqueue.TypedRateLimitingInterface[string]

	requests  cache.GenericLister
	nodes     corelisters.NodeLister
	pods      corelisters.PodLister
	templates corelisters.PodTemplateLister

	mu     sync.Mutex
	answer Answer

	// The fields below belong to the loop.

	shares shares
	// gone are the names of the nodes that the loop has removed.
	gone map[string]bool
}

// newAutoscaler returns an Autoscaler that ignores all requests. The clients need the rights of an
// administrator.
func newAutoscaler(requests dynamic.Interface, kube kubernetes.Interface) *Autoscaler {
	return &Autoscaler{
		dynamic: requests, kube: kube,
		queue:  workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
		shares: shares{}, gone: map[string]bool{},
	}
}

// Answer sets how requests are answered from now on, including existing ones.
func (a *Autoscaler) Answer(answer Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = answer
	a.wake()
}

func (a *Autoscaler) current() Answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.answer
}

// everything is the only key of the queue: a request may change what others get.
const everything = "everything"

func (a *Autoscaler) wake() { a.queue.Add(everything) }

// Run answers requests until ctx is done. It can be called once.
func (a *Autoscaler) Run(ctx context.Context) error {
	wake := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { a.wake() },
		UpdateFunc: func(any, any) { a.wake() },
		DeleteFunc: func(any) { a.wake() },
	}
	requests := dynamicinformer.NewDynamicSharedInformerFactory(a.dynamic, 0)
	core := informers.NewSharedInformerFactory(a.kube, 0)
	a.requests = requests.ForResource(Resource).Lister()
	a.nodes, a.pods = core.Core().V1().Nodes().Lister(), core.Core().V1().Pods().Lister()
	a.templates = core.Core().V1().PodTemplates().Lister()
	for _, informer := range []cache.SharedIndexInformer{
		requests.ForResource(Resource).Informer(), core.Core().V1().Nodes().Informer(),
		core.Core().V1().Pods().Informer(), core.Core().V1().PodTemplates().Informer(),
	} {
		if _, err := informer.AddEventHandler(wake); err != nil {
			return fmt.Errorf("following objects: %w", err)
		}
	}
	requests.Start(ctx.Done())
	core.Start(ctx.Done())
	defer requests.Shutdown()
	defer core.Shutdown()
	requests.WaitForCacheSync(ctx.Done())
	core.WaitForCacheSync(ctx.Done())
	context.AfterFunc(ctx, a.queue.ShutDown)
	for a.next(ctx) {
	}
	return nil
}

// next waits until something has changed and processes it. It returns false at the end.
func (a *Autoscaler) next(ctx context.Context) bool {
	key, ended := a.queue.Get()
	if ended {
		return false
	}
	defer a.queue.Done(key)
	err := a.sync(ctx)
	switch {
	case err == nil:
		a.queue.Forget(key)
	case ctx.Err() == nil:
		klog.FromContext(ctx).V(1).Info("The stand-in for the autoscaler tries again", "err", err)
		a.queue.AddRateLimited(key)
	}
	return true
}

// sync removes nodes that are no longer needed, and moves all requests one step further.
func (a *Autoscaler) sync(ctx context.Context) error {
	requests, err := a.list()
	if err != nil {
		return err
	}
	added, err := a.added()
	if err != nil {
		return err
	}
	errs := []error{a.removeNodes(ctx, requests, added)}
	answer, ahead := a.current(), map[*Pool]turn{}
	for _, request := range requests {
		s := step{Autoscaler: a, request: request, answer: answer, nodes: added[request.UID], ahead: ahead}
		errs = append(errs, ignoreChanged(s.take(ctx)))
	}
	return errors.Join(errs...)
}

// added returns the nodes that were added for each request.
func (a *Autoscaler) added() (map[types.UID][]*corev1.Node, error) {
	nodes, err := a.nodes.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	added := map[types.UID][]*corev1.Node{}
	for _, node := range nodes {
		if requestOf(node) == "" {
			continue
		}
		added[requestOf(node)] = append(added[requestOf(node)], node)
	}
	return added, nil
}

// ignoreChanged drops the error if an object has changed or is gone: its next event is on its way.
func ignoreChanged(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
