package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/controller/codec"
	"kube-queue.dev/kube-queue/pkg/lenient"
)

// unreadableUnits reports each unreadable unit once per version of its spec.
type unreadableUnits struct {
	emit     func(backend.Notice)
	reported map[string]specState
}

type specState struct {
	uid        types.UID
	generation int64
}

// see processes any unit and reports it if it is unreadable.
func (u *unreadableUnits) see(logger klog.Logger, object lenient.Object) {
	key := object.GetNamespace() + "/" + object.GetName()
	unit, is := object.(*lenient.Unreadable)
	now := specState{object.GetUID(), object.GetGeneration()}
	switch {
	case !is:
		delete(u.reported, key)
		return
	case u.reported[key] == now:
		return
	}
	if u.reported == nil {
		u.reported = map[string]specState{}
	}
	u.reported[key] = now
	what := "cannot be read"
	if codec.IsTooLarge(unit) {
		what = "is too large"
	}
	message := fmt.Sprintf("The unit %s: %v. It is not admitted; if it holds quota, it keeps the quota that it was charged before. Delete it and create a valid one.", what, unit.Err)
	logger.Info("A unit is invalid", "unit", klog.KObj(unit), "message", message)
	if u.emit != nil {
		u.emit(backend.Notice{About: reference("QueueUnit", unit), Type: corev1.EventTypeWarning, Reason: wellknown.EventUnreadableUnit, Message: message})
	}
}

func (u *unreadableUnits) gone(key string) { delete(u.reported, key) }

// reference returns the part of an object of our API group that an event needs.
func reference(kind string, of metav1.Object) *unstructured.Unstructured {
	about := &unstructured.Unstructured{}
	about.SetGroupVersionKind(schedulingv1alpha1.SchemeGroupVersion.WithKind(kind))
	about.SetNamespace(of.GetNamespace())
	about.SetName(of.GetName())
	about.SetUID(of.GetUID())
	about.SetResourceVersion(of.GetResourceVersion())
	about.SetGeneration(of.GetGeneration())
	return about
}
