package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/arrival"
	"kube-queue.dev/kube-queue/pkg/follow"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
	"kube-queue.dev/kube-queue/pkg/requests"
)

// watchGrowth watches the pods that wait at the gate, or have passed it, and queues their jobs.
func (r *reconciler) watchGrowth() error {
	if !r.grows() {
		return nil
	}
	_, err := r.pods.AddEventHandler(follow.Handler(r.growthChanged, r.growthGone))
	return err
}

func (r *reconciler) growthGone(pod *corev1.Pod) {
	r.memory.grown.forget(pod.UID)
	r.growthChanged(pod)
}

// growthChanged queues the job that controls the pod, directly or through an object of Kind.Remains.
func (r *reconciler) growthChanged(pod *corev1.Pod) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if !framework.IsGrowth(pod) || owner == nil {
		return
	}
	r.controlledChanged(pod)
	if r.remains == nil {
		return
	}
	object, exists, err := r.remains.GetIndexer().GetByKey(pod.Namespace + "/" + owner.Name)
	if remaining, is := object.(metav1.Object); err == nil && exists && is && remaining.GetUID() == owner.UID {
		r.controlledChanged(remaining)
	}
}

// growing returns the pods of a job that wait at the gate, or have passed it, unless they are on a lost node. Only the
// annotation of the release tells their pod set, because their owner can change the rest. KubeRay tries a RayJob again
// with another RayCluster, although pods of the deleted one may be left.
func (r *reconciler) growing(job, scaled framework.Object, now time.Time) []decision.GrowingPod {
	controller := job
	if scaled != nil {
		controller = scaled
	}
	// The only error is an index that does not exist.
	found, _ := r.pods.GetIndexer().ByIndex(byController, string(controller.GetUID()))
	if r.remains != nil {
		released, _ := r.pods.GetIndexer().ByIndex(byController, framework.Release(job.GetAnnotations()[wellknown.ReleasedAnnotation], job.GetUID(), ""))
		found = append(found, slices.DeleteFunc(released, func(object any) bool {
			pod, is := object.(*corev1.Pod)
			return is && metav1.IsControlledBy(pod, controller)
		})...)
	}
	var pods []decision.GrowingPod
	for _, object := range found {
		if pod, is := object.(*corev1.Pod); is && framework.IsGrowth(pod) && !graceOver(pod, now) {
			pods = append(pods, decision.GrowingPod{Pod: pod, Set: pod.Annotations[wellknown.GrowthAnnotation]})
		}
	}
	return pods
}

// grow opens the gates of as many pods as the unit of a job and its units for growth were admitted with, and asks for
// further pods of the job. All writes are guarded by versions, and the next decision waits until the caches show them.
// It returns when to check again.
func (r *reconciler) grow(ctx context.Context, o *observation, units []*v1alpha1.QueueUnit) (time.Duration, error) {
	adapter, grows := r.adapter.(framework.Growing)
	switch {
	case !grows:
		return 0, nil
	case o.unit == nil, r.pods == nil: // pods that have passed are charged anyway
		return 0, failed(r.growUnits(ctx, o, decision.Growth{Leave: units}))
	case !r.pods.HasSynced():
		return time.Second, nil
	}
	scaled := r.scaledOf(o.job.GetUID())
	pods := r.growing(o.job, scaled, o.now)
	gated := decision.IsGated(o.unit) || len(units) > 0 || decision.PassCopies(o.job, pods)
	if !gated && len(pods) == 0 {
		return 0, nil
	}
	wait := time.Duration(0)
	for _, pod := range pods {
		wait = max(wait, r.memory.behindGrowth(pod.Pod, o.now))
	}
	for _, unit := range units {
		wait = max(wait, r.memory.behindGrowth(unit, o.now))
	}
	if wait > 0 {
		return wait, nil
	}
	r.memory.forgetGrown(o.now)
	var wanted map[string]int32
	if gated && o.state.End == nil && !o.state.Deleting {
		wanted = adapter.Growing(o.job, scaled)
	}
	growth, err := decision.GrowthOf(o.unit, units, wanted, pods, adapter.KeepsGrowth())
	if err != nil {
		return 0, err
	}
	after := firstGraceOver(pods, o.now)
	if scaled != nil && slices.ContainsFunc(pods, func(p decision.GrowingPod) bool { return !metav1.IsControlledBy(p, scaled) }) {
		after = sooner(after, leftAgain) // nothing shows whose pods those of a deleted RayCluster were
	}
	return after, failed(append(r.growPods(ctx, o, growth), r.growUnits(ctx, o, growth)...))
}

// failed joins the errors, except those of objects that have changed in the meantime: their events trigger the next
// step.
func failed(errs []error) error {
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool { return err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) })...)
}

// growPods opens the gates of pods, and deletes those that must end.
func (r *reconciler) growPods(ctx context.Context, o *observation, growth decision.Growth) (errs []error) {
	for _, pod := range growth.Pass {
		errs = append(errs, r.letThrough(ctx, o, pod))
	}
	deleted := false
	for _, pod := range growth.Delete {
		err := r.pods.client.Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(pod.UID)}})
		r.memory.awaitGrown(pod.UID, after(pod.ResourceVersion, "", err, version{value: pod.ResourceVersion, pass: true}), o.now)
		if err != nil {
			errs = append(errs, fmt.Errorf("deleting Pod %s/%s: %w", pod.Namespace, pod.Name, err))
		}
		deleted = deleted || err == nil
	}
	if deleted {
		r.recordGrowthEvicted(o, growth.Evicted)
	}
	return errs
}

func (r *reconciler) growUnits(ctx context.Context, o *observation, growth decision.Growth) (errs []error) {
	patch := func(unit *v1alpha1.QueueUnit, part string, fields map[string]any) {
		written, err := r.sendUnit(ctx, unit, part, fields, nil)
		r.memory.awaitGrown(unit.UID, after(unit.ResourceVersion, written, err, version{}), o.now)
		errs = append(errs, err)
	}
	for i := range growth.Create {
		errs = append(errs, r.ask(ctx, o, &growth.Create[i]))
	}
	for _, change := range growth.Resize {
		patch(change.Unit, "spec", (&decision.Desired{Spec: change.Spec}).Changes(change.Unit))
	}
	now := metav1.NewTime(o.now)
	for _, unit := range growth.Run {
		patch(unit, "status", lifecycle.Running(unit, now))
	}
	for _, unit := range growth.Stop {
		patch(unit, "status", lifecycle.Stopped(unit, now))
	}
	for _, unit := range growth.Leave {
		err := r.client.QueueUnits(unit.Namespace).Delete(ctx, unit.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &unit.UID, ResourceVersion: &unit.ResourceVersion}})
		r.memory.awaitGrown(unit.UID, after(unit.ResourceVersion, "", err, version{value: unit.ResourceVersion, pass: true}), o.now)
		if err != nil {
			errs = append(errs, fmt.Errorf("deleting QueueUnit %s/%s: %w", unit.Namespace, unit.Name, err))
		}
	}
	return errs
}

// grows reports whether jobs of the kind can grow at the gate.
func (r *reconciler) grows() bool {
	_, is := r.adapter.(framework.Growing)
	return is && r.pods != nil
}

// restoreGrowth limits the request of a unit that replaces a lost one to the pods that had already passed the gate.
func (r *reconciler) restoreGrowth(o *observation, unit *v1alpha1.QueueUnit) {
	if !r.grows() {
		return
	}
	_, grown, _ := r.unitsOf(o.key, o.job)
	pods := r.growing(o.job, r.scaledOf(o.job.GetUID()), o.now)
	for i := range unit.Spec.PodSets {
		set := &unit.Spec.PodSets[i]
		if passed, gated := decision.PassedBefore(pods, grown, set.Name); gated {
			limit(unit, set, passed)
		}
	}
}

// limit lowers the number of pods of a pod set, and the request of its unit.
func limit(unit *v1alpha1.QueueUnit, set *v1alpha1.PodSet, pods int32) {
	if pods >= set.Count {
		return
	}
	less, _ := requests.Times(set.Requests, set.Count-pods) // it cannot overflow, because the unit requests more
	set.Count, set.MinCount = pods, nil
	for name, amount := range less {
		total := unit.Spec.Resource[name]
		total.Sub(amount)
		unit.Spec.Resource[name] = total
	}
}

// admittedAreReady reports whether the pods that the unit of a job was admitted with are ready.
func (r *reconciler) admittedAreReady(job framework.Object, unit *v1alpha1.QueueUnit) bool {
	adapter, grows := r.adapter.(framework.Growing)
	if !grows || r.pods == nil {
		return false
	}
	scaled := r.scaledOf(job.GetUID())
	return decision.AdmittedAreReady(unit, adapter.Growing(job, scaled), r.growing(job, scaled, r.Clock.Now()))
}

func (r *reconciler) letThrough(ctx context.Context, o *observation, pod decision.GrowingPod) error {
	passed, err := r.pass(ctx, o, pod.Pod, pod.Set, nil)
	written := version{value: passed}
	if err != nil { // it may have passed
		written = version{value: pod.ResourceVersion, pass: true}
	}
	r.memory.awaitGrown(pod.UID, written, o.now)
	return err
}

// ask creates a unit for more pods of a job. Its number is the lowest that no unit in the cache has. If another unit has
// the name, the cache will show it soon.
func (r *reconciler) ask(ctx context.Context, o *observation, spec *v1alpha1.QueueUnitSpec) error {
	name, set := "", spec.PodSets[0].Name
	for number := 1; ; number++ {
		name = decision.GrowthName(r.kind.Kind, o.key.Name, o.job.GetUID(), set, number)
		if _, taken, err := r.units.GetIndexer().GetByKey(cache.NewObjectName(o.key.Namespace, name).String()); err == nil && !taken {
			break
		}
	}
	kind := r.servedKind()
	apiVersion, kindName := kind.ToAPIVersionAndKind()
	unit := &v1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.key.Namespace, Name: name,
			Labels:          map[string]string{wellknown.KindLabel: kind.Kind},
			Annotations:     arrival.Annotate(nil, ""),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kindName, Name: o.key.Name, UID: o.job.GetUID(), Controller: new(true)}}},
		Spec: *spec,
	}
	_, err := r.client.QueueUnits(o.key.Namespace).Create(ctx, unit, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating QueueUnit %s/%s: %w", o.key.Namespace, name, err)
	}
	return nil
}
