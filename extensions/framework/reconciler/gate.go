package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/lenient"
)

// byPodGroup indexes pods by the namespace and name of their group, if they have one.
const byPodGroup = "pod-group"

// gatedPods caches the pods that a policy has given the gate of kube-queue. Other pods are never read.
type gatedPods struct {
	cache.SharedIndexInformer
	client corev1client.PodsGetter
}

func newGatedPods(client corev1client.PodsGetter, report lenient.Report) (*gatedPods, error) {
	source := podSource{client}
	informer, err := lenient.InformerOf(source, report, "pods at the gate", cache.Indexers{byPodGroup: func(obj any) ([]string, error) {
		if pod, is := obj.(*corev1.Pod); is && pod.Labels[wellknown.PodGroupLabel] != "" {
			return []string{pod.Namespace + "/" + pod.Labels[wellknown.PodGroupLabel]}, nil
		}
		return nil, nil
	}, byController: indexGrowing}, func(obj any) (any, error) {
		if pod, is := obj.(*corev1.Pod); is {
			decision.SlimPod(pod)
		}
		return obj, nil
	})
	return &gatedPods{informer, client}, err
}

// indexGrowing also indexes the pods of growing jobs that have passed the gate, by the release of their job.
func indexGrowing(obj any) ([]string, error) {
	keys, err := indexController(obj)
	if pod, is := obj.(*corev1.Pod); is && framework.IsGrowth(pod) && !framework.IsGated(pod) {
		keys = append(keys, strings.TrimSuffix(pod.Annotations[wellknown.ReleasedAnnotation], pod.Annotations[wellknown.GrowthAnnotation]))
	}
	return keys, err
}

// podSource lists and watches the pods with the label that the policy adds together with the gate.
type podSource struct{ client corev1client.PodsGetter }

func (s podSource) List(ctx context.Context, namespace string, opts metav1.ListOptions) (runtime.Object, error) {
	return s.client.Pods(namespace).List(ctx, gated(opts))
}

func (s podSource) Watch(ctx context.Context, namespace string, opts metav1.ListOptions) (watch.Interface, error) {
	return s.client.Pods(namespace).Watch(ctx, gated(opts))
}

func gated(opts metav1.ListOptions) metav1.ListOptions {
	opts.LabelSelector = wellknown.GatedLabel + "=true"
	return opts
}

// gate reads jobs that consist of gated pods: single pods, or groups. It is their cache, and takes the place of a
// jobClient.
type gate struct {
	*gatedPods
	units *unitCache
	kind  framework.Kind
	clock clock.PassiveClock
}

// grouped is whether the jobs are groups of pods.
func (g *gate) grouped() bool { return g.kind.PodLabel.Key != "" }

func (g *gate) Version() string { return g.kind.Version }

// jobOf reports whether the pod belongs to a job of the kind, and to which.
func (g *gate) jobOf(pod *corev1.Pod) (types.NamespacedName, bool) {
	group := pod.Labels[wellknown.PodGroupLabel]
	switch {
	case framework.IsGrowth(pod): // a part of another job
		return types.NamespacedName{}, false
	case g.grouped():
		return types.NamespacedName{Namespace: pod.Namespace, Name: group}, group != ""
	default:
		return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, group == ""
	}
}

// job returns the job that consists of these pods; nil if there are none.
func (g *gate) job(key types.NamespacedName, pods []*corev1.Pod) *framework.PodGroup {
	if !g.grouped() {
		return framework.NewPodGroup(key.Name, pods, "")
	}
	// A pod on a lost node may exist forever, and is not charged after its grace period.
	now := g.clock.Now()
	pods = slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool {
		return !framework.IsGated(pod) && !framework.HasEnded(pod) && graceOver(pod, now)
	})
	var unit *v1alpha1.QueueUnit
	for _, one := range g.units.of(g.kind.GroupKind(), key) {
		if !one.Status.Phase.Ended() && (unit == nil || one.CreationTimestamp.Before(&unit.CreationTimestamp)) {
			unit = one
		}
	}
	if unit == nil {
		return framework.NewPodGroup(key.Name, pods, "")
	}
	return framework.NewPodGroup(key.Name, pods, unit.Spec.ConsumerRef.UID)
}

// GetIndexer returns the cache of the jobs.
func (g *gate) GetIndexer() cache.Indexer { return gateIndexer{g.SharedIndexInformer.GetIndexer(), g} }

type gateIndexer struct {
	cache.Indexer
	gate *gate
}

func (i gateIndexer) GetByKey(key string) (any, bool, error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil, false, err
	}
	var found []any
	if i.gate.grouped() {
		found, err = i.ByIndex(byPodGroup, key)
	} else if object, exists, failed := i.Indexer.GetByKey(key); exists || failed != nil {
		found, err = []any{object}, failed
	}
	if err != nil {
		return nil, false, err
	}
	var pods []*corev1.Pod
	for _, object := range found {
		if pod, is := object.(*corev1.Pod); is {
			if _, belongs := i.gate.jobOf(pod); belongs {
				pods = append(pods, pod)
			}
		}
	}
	job := i.gate.job(types.NamespacedName{Namespace: namespace, Name: name}, pods)
	if job == nil {
		return nil, false, nil
	}
	return job, true, nil
}

// AddEventHandler calls the handler with the jobs whose pods change.
func (g *gate) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	changed := func(object any) {
		if pod, is := object.(*corev1.Pod); is {
			g.tell(pod, handler)
		}
	}
	return g.SharedIndexInformer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: changed,
		UpdateFunc: func(was, now any) {
			before, had := was.(*corev1.Pod)
			pod, is := now.(*corev1.Pod)
			if !had || !is {
				return
			}
			last, _ := g.jobOf(before)
			if key, _ := g.jobOf(pod); last != key || before.UID != pod.UID {
				g.tell(before, handler)
			}
			g.tell(pod, handler)
		},
		DeleteFunc: func(object any) {
			if tombstone, is := object.(cache.DeletedFinalStateUnknown); is {
				object = tombstone.Obj
			}
			changed(object)
			// The job may have had the UID of the pod.
			if pod, is := object.(*corev1.Pod); is && g.grouped() {
				handler.OnDelete(framework.NewPodGroup(pod.Labels[wellknown.PodGroupLabel], []*corev1.Pod{pod}, ""))
			}
		},
	})
}

// tell passes the job of a pod to the handler. A job without pods is gone.
func (g *gate) tell(pod *corev1.Pod, handler cache.ResourceEventHandler) {
	key, belongs := g.jobOf(pod)
	if !belongs {
		return
	}
	// The handler needs only the name of a job that exists. A group can have any number of pods that wait: if each change
	// of one collected and sorted them all, those of others would wait for it.
	object, _, err := g.SharedIndexInformer.GetIndexer().GetByKey(pod.Namespace + "/" + pod.Name)
	if cached, is := object.(*corev1.Pod); err == nil && is {
		if of, _ := g.jobOf(cached); of == key {
			named := &framework.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
			handler.OnUpdate(named, named)
			return
		}
	}
	if job, exists, err := g.GetIndexer().GetByKey(key.String()); err == nil && exists {
		handler.OnUpdate(job, job)
	} else if last := g.job(key, []*corev1.Pod{pod}); last != nil {
		handler.OnDelete(last)
	}
}

// Get reads a job as it is now.
func (g *gate) Get(ctx context.Context, namespace, name string) (lenient.Object, error) {
	pods, err := g.live(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	if job := g.job(types.NamespacedName{Namespace: namespace, Name: name}, pods); job != nil {
		return job, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: g.kind.Group, Resource: g.kind.Resource}, name)
}

// live reads the pods of a job as they are now.
func (g *gate) live(ctx context.Context, namespace, name string) ([]*corev1.Pod, error) {
	opts := gated(metav1.ListOptions{})
	if g.grouped() {
		selector, err := labels.ValidatedSelectorFromSet(labels.Set{wellknown.PodGroupLabel: name})
		if err != nil {
			return nil, nil // no pod can have the label
		}
		opts.LabelSelector += "," + selector.String()
	} else {
		opts.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	}
	list, err := g.client.Pods(namespace).List(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("listing the pods of %s %s/%s: %w", g.kind.Kind, namespace, name, err)
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		if _, belongs := g.jobOf(&list.Items[i]); belongs {
			pods = append(pods, &list.Items[i])
		}
	}
	return pods, nil
}

// left returns a pod that may still run although its job is gone or its pods are being deleted; empty for none.
func (g *gate) left(ctx context.Context, unit *v1alpha1.QueueUnit, now time.Time) (string, error) {
	pods, err := g.live(ctx, unit.Namespace, unit.Spec.ConsumerRef.Name)
	if err != nil {
		return "", err
	}
	for _, pod := range pods {
		if (g.grouped() || pod.UID == unit.Spec.ConsumerRef.UID) && !framework.HasEnded(pod) && !framework.IsGated(pod) && !graceOver(pod, now) {
			return pod.Name, nil
		}
	}
	return "", nil
}

// errPods is the error of requests that gated pods do not support. No decision leads to such a request.
var errPods = errors.New("pods at the gate are only let through or deleted")

func (g *gate) GetJSON(context.Context, string, string) ([]byte, error) { return nil, errPods }

func (g *gate) Patch(context.Context, types.PatchType, string, string, []byte, ...string) (string, error) {
	return "", errPods
}

// open opens the gates of the pods that can pass. The same patch adds the annotation of the release and those of
// admission checks. If the API server rejects the latter, the pods pass without them. done is whether this was the
// job's first release in this attempt.
func (r *reconciler) open(ctx context.Context, o *observation) (done bool, err error) {
	added, unnamed := decision.PodAnnotationsOf(o.unit)
	o.unplaced = unnamed
	adapter, _ := r.adapter.(framework.GatedPods)
	first := o.state.Released != decision.Attempt(o.unit)
	for i, pod := range o.passing {
		set := adapter.SetOf(pod)
		passed, err := r.pass(ctx, o, pod, set, added[set])
		if refused(err) && len(added[set]) > 0 {
			o.unplaced = o.unplaced.And(decision.Unplaced{set: "the API server refuses them: " + shortened(err)})
			delete(added, set)
			passed, err = r.pass(ctx, o, pod, set, nil)
		}
		r.memory.await(o.key, o.now, func(a *awaited) { a.job = after(pod.ResourceVersion, passed, err, a.job) })
		if err != nil {
			return first && i > 0, err
		}
		o.state.Stopped = false
	}
	return first && len(o.passing) > 0, nil
}

// pass opens the gate of a pod that belongs to the pod set, and adds more annotations. It returns the new version of
// the pod.
func (r *reconciler) pass(ctx context.Context, o *observation, pod *corev1.Pod, set string, more map[string]string) (passed string, err error) {
	annotations := map[string]any{}
	for key, value := range more {
		annotations[key] = value
	}
	annotations[wellknown.ReleasedAnnotation] = framework.Release(decision.Attempt(o.unit), o.job.GetUID(), set)
	data, err := guardedPatch(pod, annotations, map[string]any{"spec": map[string]any{"schedulingGates": framework.GatesLeft(pod)}})
	if err != nil {
		return "", err
	}
	patched, err := r.pods.client.Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, data, metav1.PatchOptions{})
	if err != nil {
		return "", fmt.Errorf("opening the gate of Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return patched.ResourceVersion, nil
}

// remove deletes the pods of an evicted job that have passed. done is whether there were any.
func (r *reconciler) remove(ctx context.Context, o *observation) (done bool, err error) {
	group := framework.As[framework.PodGroup](o.job)
	var errs []error
	for _, pod := range group.Pods {
		if pod.DeletionTimestamp != nil || framework.HasEnded(pod) || framework.IsGated(pod) {
			continue
		}
		err := r.gate.client.Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(pod.UID)}})
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("deleting Pod %s/%s: %w", pod.Namespace, pod.Name, err))
			continue
		}
		done = true
	}
	return done, errors.Join(errs...)
}
