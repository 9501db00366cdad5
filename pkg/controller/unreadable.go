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
	"kube-queue.dev/kube-queue/pkg/bounds"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/lenient"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// A unit that cannot be decoded into its type, such as one that requests "1e1.5" cores, is
// represented by its readable part, and a unit beyond the bounds by the part within. It is never
// admitted. If it holds quota, it keeps it.

// beyond is the error of a unit that can be read but exceeds the bounds of units.
type beyond struct{ error }

// unreadable compacts the readable part of the unit.
func (c compactor) unreadable(unit *lenient.Unreadable) *lenient.Unreadable {
	kept := &lenient.Unreadable{ObjectMeta: compactMeta(&unit.ObjectMeta), Err: unit.Err}
	kept.Generation = unit.Generation
	if partial, ok := unit.Partial.(*schedulingv1alpha1.QueueUnit); ok {
		kept.Partial = c.within(partial)
	}
	return kept
}

// beyond compacts the part of a unit that is within the bounds.
func (c compactor) beyond(unit *schedulingv1alpha1.QueueUnit, err error) *lenient.Unreadable {
	kept := &lenient.Unreadable{ObjectMeta: compactMeta(&unit.ObjectMeta), Err: beyond{err}, Partial: c.within(unit)}
	kept.Generation = unit.Generation
	return kept
}

func (c compactor) within(unit *schedulingv1alpha1.QueueUnit) *schedulingv1alpha1.QueueUnit {
	trimmed := *unit
	trimmed.Spec = *bounds.Trim(&unit.Spec)
	return c.unit(&trimmed)
}

// readPartial converts the readable part of a unit. If the unit was readable before, the core
// continues to charge its earlier request.
func (r unitReader) readPartial(unit *lenient.Unreadable) (scheduler.Unit, error) {
	partial, ok := unit.Partial.(*schedulingv1alpha1.QueueUnit)
	if !ok {
		return scheduler.Unit{}, fmt.Errorf("unit %s/%s cannot be read: %w", unit.Namespace, unit.Name, unit.Err)
	}
	fault := fmt.Errorf("the unit cannot be read: %w; delete it and create a valid one", unit.Err)
	if isBeyond(unit) {
		fault = fmt.Errorf("the unit is too large: %w", unit.Err)
	}
	u, err := r.readUnless(partial, fault)
	u.Partial = true
	return u, err
}

func isBeyond(unit *lenient.Unreadable) bool {
	_, is := unit.Err.(beyond)
	return is
}

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
	if isBeyond(unit) {
		what = "is too large"
	}
	message := fmt.Sprintf("The unit %s: %v. It is not admitted; if it holds quota, it keeps the quota that it was charged before. Delete it and create a valid one.", what, unit.Err)
	logger.Info("A unit is invalid", "unit", klog.KObj(unit), "message", message)
	if u.emit != nil {
		u.emit(backend.Notice{About: reference(unit), Type: corev1.EventTypeWarning, Reason: wellknown.EventUnreadableUnit, Message: message})
	}
}

func (u *unreadableUnits) gone(key string) { delete(u.reported, key) }

// reference returns the part of the unit that an event needs.
func reference(unit metav1.Object) *unstructured.Unstructured {
	about := &unstructured.Unstructured{}
	about.SetGroupVersionKind(schedulingv1alpha1.SchemeGroupVersion.WithKind("QueueUnit"))
	about.SetNamespace(unit.GetNamespace())
	about.SetName(unit.GetName())
	about.SetUID(unit.GetUID())
	about.SetResourceVersion(unit.GetResourceVersion())
	about.SetGeneration(unit.GetGeneration())
	return about
}
