package codec

import (
	"fmt"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/bounds"
	"kube-queue.dev/kube-queue/pkg/lenient"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// beyond is the error of a unit that can be read but exceeds the bounds of units.
type beyond struct{ error }

// unreadable compacts the readable part of the unit.
func (c Compactor) unreadable(unit *lenient.Unreadable) *lenient.Unreadable {
	kept := &lenient.Unreadable{ObjectMeta: compactMeta(&unit.ObjectMeta), Err: unit.Err}
	kept.Generation = unit.Generation
	if partial, ok := unit.Partial.(*schedulingv1alpha1.QueueUnit); ok {
		kept.Partial = c.within(partial)
	}
	return kept
}

// beyond compacts the part of a unit that is within the bounds.
func (c Compactor) beyond(unit *schedulingv1alpha1.QueueUnit, err error) *lenient.Unreadable {
	kept := &lenient.Unreadable{ObjectMeta: compactMeta(&unit.ObjectMeta), Err: beyond{err}, Partial: c.within(unit)}
	kept.Generation = unit.Generation
	return kept
}

func (c Compactor) within(unit *schedulingv1alpha1.QueueUnit) *schedulingv1alpha1.QueueUnit {
	trimmed := *unit
	trimmed.Spec = *bounds.Trim(&unit.Spec)
	return c.unit(&trimmed)
}

// readPartial converts the readable part of a unit. If the unit was readable before, the core keeps charging its
// earlier request.
func (r Reader) readPartial(unit *lenient.Unreadable) (scheduler.Unit, error) {
	partial, ok := unit.Partial.(*schedulingv1alpha1.QueueUnit)
	if !ok {
		return scheduler.Unit{}, fmt.Errorf("unit %s/%s cannot be read: %w", unit.Namespace, unit.Name, unit.Err)
	}
	fault := fmt.Errorf("the unit cannot be read: %w; delete it and create a valid one", unit.Err)
	if IsTooLarge(unit) {
		fault = fmt.Errorf("the unit is too large: %w", unit.Err)
	}
	u, err := r.readUnless(partial, fault)
	u.Partial = true
	return u, err
}

// IsTooLarge reports whether a unit can be read but exceeds the bounds of units.
func IsTooLarge(unit *lenient.Unreadable) bool {
	_, is := unit.Err.(beyond)
	return is
}
