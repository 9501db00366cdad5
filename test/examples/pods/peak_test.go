package pods

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	helpers "k8s.io/component-helpers/resource"

	"kube-queue.dev/kube-queue/pkg/follow"
	"kube-queue.dev/kube-queue/test/examples"
	"kube-queue.dev/kube-queue/test/harness"
)

// node gets the pods that do not fit on any node.
const node = "node-1"

// peaks watches all pods and records, per namespace, the largest number and requests at one
// time.
type peaks struct {
	kube kubernetes.Interface

	mu   sync.Mutex
	pods map[string]map[types.UID]corev1.ResourceList
	most map[string]*peak
}

// peak is the largest number of pods, and the largest amount of each resource, at one time.
type peak struct {
	pods     int
	requests corev1.ResourceList
}

// watchPods watches until the test ends.
func watchPods(t *testing.T, kube kubernetes.Interface) *peaks {
	t.Helper()
	p := &peaks{kube: kube, pods: map[string]map[types.UID]corev1.ResourceList{}, most: map[string]*peak{}}
	factory := informers.NewSharedInformerFactory(kube, 0)
	informer := factory.Core().V1().Pods().Informer()
	_, err := follow.Objects(informer, p.see, p.forget)
	harness.Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var binding sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		binding.Wait()
		factory.Shutdown()
	})
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	binding.Go(func() { p.bind(ctx, informer.GetStore()) })
	return p
}

func (p *peaks) see(pod *corev1.Pod) {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		p.forget(pod)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	pods := p.pods[pod.Namespace]
	if pods == nil {
		pods = map[types.UID]corev1.ResourceList{}
		p.pods[pod.Namespace], p.most[pod.Namespace] = pods, &peak{requests: corev1.ResourceList{}}
	}
	pods[pod.UID] = helpers.PodRequests(pod, helpers.PodResourcesOptions{})
	p.most[pod.Namespace].raise(pods)
}

func (p *peaks) forget(pod *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pods[pod.Namespace], pod.UID)
}

// raise updates the peak with the pods that exist now.
func (p *peak) raise(pods map[types.UID]corev1.ResourceList) {
	p.pods = max(p.pods, len(pods))
	sum := corev1.ResourceList{}
	for _, requests := range pods {
		for name, quantity := range requests {
			total := sum[name]
			total.Add(quantity)
			sum[name] = total
		}
	}
	for name, quantity := range sum {
		if have := p.requests[name]; quantity.Cmp(have) > 0 {
			p.requests[name] = quantity
		}
	}
}

// of returns the peak of a namespace as text.
func (p *peaks) of(namespace string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	most := p.most[namespace]
	if most == nil {
		return examples.Demand(0, nil)
	}
	return examples.Demand(most.pods, most.requests)
}

// bind binds each pod that the scheduler cannot place, or whose scheduler does not run here, to
// the node.
func (p *peaks) bind(ctx context.Context, pods cache.Store) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, object := range pods.List() {
			pod := object.(*corev1.Pod)
			if !stuck(pod) {
				continue
			}
			binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID},
				Target: corev1.ObjectReference{Kind: "Node", Name: node}}
			// The store may be out of date. The next tick retries after an error.
			_ = p.kube.CoreV1().Pods(pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{})
		}
	}
}

func stuck(pod *corev1.Pod) bool {
	if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
		return false
	}
	if pod.Spec.SchedulerName != corev1.DefaultSchedulerName {
		return true
	}
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable
	})
}
