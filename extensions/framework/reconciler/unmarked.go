package reconciler

import (
	"context"
	"fmt"
	"unique"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/arrival"
)

// unmarked is the cached form of a job that does not concern us: only the annotation marks jobs of its kind, and the
// job has neither the annotation nor a unit. It has only the name, UID and version of the job.
type unmarked struct{ metav1.ObjectMeta }

func (u *unmarked) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

func (u *unmarked) DeepCopyObject() runtime.Object {
	out := &unmarked{}
	u.DeepCopyInto(&out.ObjectMeta)
	return out
}

func newUnmarked(job metav1.Object) *unmarked {
	return &unmarked{metav1.ObjectMeta{
		// There are few namespaces, and their names are in each object.
		Namespace: unique.Make(job.GetNamespace()).Value(), Name: job.GetName(), UID: job.GetUID(), ResourceVersion: job.GetResourceVersion(),
	}}
}

// isUnmarked reports whether a cached job is an unmarked replacement.
func isUnmarked(job framework.Object) bool {
	_, is := job.(*unmarked)
	return is
}

// isMisspelled reports whether the annotation has a value that is probably not meant to keep a job out of the queue,
// such as "True" or "yes".
func isMisspelled(annotations map[string]string) bool {
	value, there := annotations[wellknown.SuspendAnnotation]
	return there && value != "true" && value != "false"
}

// concerns reports whether a job of a kind that only the annotation marks is cached with its spec.
func (r *reconciler) concerns(job framework.Object) bool {
	annotations := job.GetAnnotations()
	if annotations[wellknown.SuspendAnnotation] == "true" || annotations[wellknown.ReleasedAnnotation] != "" {
		return true
	}
	if isMisspelled(annotations) || decision.AlmostMarked(job) != "" {
		return true // its owner is notified
	}
	if _, labelled := job.GetLabels()[wellknown.KueueLabel]; labelled && r.kueue.isMissing() {
		return true
	}
	key := types.NamespacedName{Namespace: job.GetNamespace(), Name: job.GetName()}
	return len(r.units.of(r.kind, key)) > 0
}

// whole returns the job that a cached one represents. If a job has lost its mark, only its unit shows that it
// concerns us, and the unit may have been cached after the job. The turn ends before the job is read.
func (r *reconciler) whole(ctx context.Context, turn *arrival.Turn, key types.NamespacedName, job framework.Object) (framework.Object, error) {
	if job == nil || !isUnmarked(job) {
		return job, nil
	}
	if own, _, _ := r.unitsOf(key, job); own == nil {
		return job, nil
	}
	turn.End()
	live, err := r.jobs.Get(ctx, key.Namespace, key.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", r.kind.Kind, key, err)
	}
	decision.Slim(r.adapter, live)
	return live, nil
}
