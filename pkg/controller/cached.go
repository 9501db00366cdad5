package controller

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/pkg/lenient"
)

var _ lenient.Object = (*cachedUnit)(nil)

// cachedUnit is what the informer keeps of a unit: what it needs to know it by. What
// is decided by is in the core, and twice would be too much of it where there are a
// hundred thousand units.
type cachedUnit struct {
	metav1.ObjectMeta
	// unit is on its way to the loop; nil once it was taken.
	unit lenient.Object
}

// cachedUnits is a transform that has the compactor's outcome cached so. Informers may
// transform an object twice.
func cachedUnits(c compactor) func(any) (any, error) {
	return func(object any) (any, error) {
		object, err := c.compact(object)
		unit, is := object.(lenient.Object)
		if _, done := object.(*cachedUnit); err != nil || done || !is {
			return object, err
		}
		return &cachedUnit{unit: unit, ObjectMeta: metav1.ObjectMeta{
			Namespace: unit.GetNamespace(), Name: unit.GetName(), UID: unit.GetUID(), ResourceVersion: unit.GetResourceVersion()}}, nil
	}
}

// take is the unit, for the one handler that there is.
func (u *cachedUnit) take() lenient.Object {
	unit := u.unit
	u.unit = nil
	return unit
}

// GetObjectKind reports nothing: whoever has one knows what it is.
func (u *cachedUnit) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject shares the unit, which nobody changes.
func (u *cachedUnit) DeepCopyObject() runtime.Object {
	return &cachedUnit{ObjectMeta: *u.ObjectMeta.DeepCopy(), unit: u.unit}
}
