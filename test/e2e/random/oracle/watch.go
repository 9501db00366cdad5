package oracle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	resourcehelper "k8s.io/component-helpers/resource"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/clientset"
	"kube-queue.dev/kube-queue/pkg/follow"
)

// JobLabel is the label of pods with the name of the job that they were created for.
const JobLabel = "test/job"

// Record is what the oracle has seen.
type Record struct {
	namespaces []string
	jobOf      func(name string) string

	mu     sync.Mutex
	events []Event
	pods   map[string]*corev1.Pod
	units  map[string]*schedulingv1alpha1.QueueUnit
	// used is the last status of the tree.
	used map[string]Amounts
	// unlabelled are pods without JobLabel, by name. ended are the jobs whose unit has ended, by name. Any user may
	// delete such a unit.
	unlabelled, ended map[string]bool
}

// Watch records the pods and units of these namespaces, and the status of the tree, until the context ends. jobOf
// returns the JobLabel for the name of a unit's job. The two differ for objects that were queued after the job that
// created them was deleted.
func Watch(ctx context.Context, config *rest.Config, namespaces []string, jobOf func(name string) string) (*Record, error) {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("the oracle's clients: %w", err)
	}
	queue, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("the oracle's clients: %w", err)
	}
	r := &Record{
		namespaces: namespaces, jobOf: jobOf, pods: map[string]*corev1.Pod{},
		units: map[string]*schedulingv1alpha1.QueueUnit{}, unlabelled: map[string]bool{}, ended: map[string]bool{},
	}
	ours := func(client rest.Interface, resource string, object runtime.Object) cache.SharedInformer {
		return cache.NewSharedInformer(cache.NewListWatchFromClient(client, resource, metav1.NamespaceAll, fields.Everything()), object, 0)
	}
	return r, errors.Join(
		watch(ctx, informers.NewSharedInformerFactory(kube, 0).Core().V1().Pods().Informer(), r.seePod),
		watch(ctx, ours(queue.SchedulingV1alpha1().RESTClient(), "queueunits", &schedulingv1alpha1.QueueUnit{}), r.seeUnit),
		watch(ctx, ours(queue.QuotaV1beta1().RESTClient(), "elasticquotatrees", &quotav1beta1.ElasticQuotaTree{}), r.seeTree))
}

// watch passes the objects of an informer to see, and returns after it has passed the existing ones.
func watch[T any](ctx context.Context, informer cache.SharedInformer, see func(object T, gone bool)) error {
	synced, err := follow.Objects(informer, func(o T) { see(o, false) }, func(o T) { see(o, true) })
	if err != nil {
		return fmt.Errorf("the oracle's watches: %w", err)
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), synced) {
		return fmt.Errorf("the oracle's watches: %w", context.Cause(ctx))
	}
	return nil
}

// add records an event of the object, and then calls keep.
func (r *Record) add(o metav1.Object, gone bool, e Event, keep func()) {
	revision, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		panic(fmt.Sprintf("resourceVersion %q of %s/%s: %v", o.GetResourceVersion(), o.GetNamespace(), o.GetName(), err))
	}
	e.At, e.Revision, e.Gone = time.Now(), revision, gone
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	keep()
}

func (r *Record) seePod(p *corev1.Pod, gone bool) {
	if !slices.Contains(r.namespaces, p.Namespace) {
		return
	}
	uid := string(p.UID)
	r.add(p, gone, Event{Pod: new(podOf(p))}, func() {
		r.pods[uid] = p
		if gone {
			delete(r.pods, uid)
		}
		if p.Labels[JobLabel] == "" {
			r.unlabelled[p.Namespace+"/"+p.Name] = true
		}
	})
}

func podOf(p *corev1.Pod) Pod {
	var until time.Time
	if p.DeletionTimestamp != nil && p.DeletionGracePeriodSeconds != nil {
		until = p.DeletionTimestamp.Add(time.Duration(*p.DeletionGracePeriodSeconds) * time.Second)
	}
	return Pod{
		Namespace: p.Namespace, Name: p.Name, UID: string(p.UID), Job: p.Labels[JobLabel], Idle: hasEnded(p) || isGated(p), Until: until,
		Requests: AmountsOf(resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})),
	}
}

func hasEnded(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// isGated reports whether the pod waits at the gate. The scheduler does not see it.
func isGated(p *corev1.Pod) bool {
	return p.Spec.NodeName == "" && slices.Contains(p.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: wellknown.PodGate})
}

func (r *Record) seeUnit(u *schedulingv1alpha1.QueueUnit, gone bool) {
	if !slices.Contains(r.namespaces, u.Namespace) {
		return
	}
	uid := string(u.UID)
	requests := admittedWith(u)
	r.add(u, gone, Event{Unit: &Unit{
		Namespace: u.Namespace, UID: uid, Job: r.jobOf(u.Spec.ConsumerRef.Name), Attempts: u.Status.Attempts,
		Admitted: u.Status.Phase == schedulingv1alpha1.PhaseDequeued, Holds: holds(u), Requests: requests,
	}}, func() {
		r.units[uid] = u
		if u.Status.Phase.Ended() && !u.Spec.Growth {
			r.ended[u.Namespace+"/"+u.Spec.ConsumerRef.Name] = true
		}
		if gone {
			delete(r.units, uid)
		}
	})
}

// admittedWith returns what the unit uses if it is admitted. Growth is no job, and may be admitted with fewer pods.
func admittedWith(u *schedulingv1alpha1.QueueUnit) Amounts {
	requests := AmountsOf(u.Spec.Resource)
	if !u.Spec.Growth {
		requests[MaxJobs] = 1
	}
	for _, set := range u.Spec.PodSets {
		for _, admitted := range u.Status.AdmittedPodSets {
			if admitted.Name != set.Name {
				continue
			}
			for name, amount := range AmountsOf(set.Requests) {
				requests[name] -= int64(max(set.Count-admitted.Count, 0)) * amount
			}
		}
	}
	return requests
}

// holds reports whether the unit surely holds what it was admitted with. The controller may have uncharged a stopped
// unit, and charges only the pods of a job that has ended.
func holds(u *schedulingv1alpha1.QueueUnit) bool {
	stopped := slices.ContainsFunc(u.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == wellknown.ConditionEvicted && c.Status == metav1.ConditionTrue
	})
	return u.Status.Phase.HoldsQuota() && u.Status.Reason != wellknown.ReasonPodsRemain && !stopped
}

func (r *Record) seeTree(tree *quotav1beta1.ElasticQuotaTree, gone bool) {
	if gone || len(tree.Status.Nodes) == 0 {
		return
	}
	used := map[string]Amounts{}
	for _, node := range tree.Status.Nodes {
		used[node.Path] = AmountsOf(node.Used)
	}
	r.add(tree, gone, Event{Used: used}, func() { r.used = used })
}

// Shows reports whether the last status of the tree contains all existing pods, or what is missing.
func (r *Record) Shows(tree []Node) (bool, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	j := &judge{tree: tree, used: r.used, pods: map[string]*pod{}}
	for uid, p := range r.pods {
		if seen := podOf(p); !seen.Idle {
			j.pods[uid] = &pod{Pod: seen}
		}
	}
	lacks, _ := j.lacks(time.Now(), 0)
	return lacks == "", lacks
}

// Judge verifies what was seen so far.
func (r *Record) Judge(tree []Node, down []Span, delay time.Duration) Verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := Judge(tree, r.events, down, delay)
	for name := range r.unlabelled {
		v.Violations = append(v.Violations, Violation{What: fmt.Sprintf("pod %s has no label %s, so the test does not know its job", name, JobLabel)})
	}
	return v
}

// Unit returns the newest unit of the job that is not for growth, or nil.
func (r *Record) Unit(namespace, job string) (found *schedulingv1alpha1.QueueUnit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, u := range r.units {
		if u.Namespace == namespace && u.Spec.ConsumerRef.Name == job && !u.Spec.Growth && (found == nil || found.CreationTimestamp.Before(&u.CreationTimestamp)) {
			found = u
		}
	}
	return found
}

// Ended reports whether a unit of the job has ended, even if it is gone.
func (r *Record) Ended(namespace, job string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended[namespace+"/"+job]
}

// Units returns the units of the job and of the objects that it created, by name.
func (r *Record) Units(namespace, job string) (found []*schedulingv1alpha1.QueueUnit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, u := range r.units {
		if u.Namespace == namespace && r.jobOf(u.Spec.ConsumerRef.Name) == job {
			found = append(found, u)
		}
	}
	slices.SortFunc(found, func(a, b *schedulingv1alpha1.QueueUnit) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// Pods returns the pods of the job that have not ended, by name.
func (r *Record) Pods(namespace, job string) (found []*corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pods {
		if p.Namespace == namespace && p.Labels[JobLabel] == job && !hasEnded(p) {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// Count returns the number of units and pods.
func (r *Record) Count() (units, pods int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.units), len(r.pods)
}
