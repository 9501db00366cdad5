package controller

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/pkg/lenient"
)

var _ lenient.Object = (*cachedUnit)(nil)

// cachedUnit is the part of a unit that the informer stores: what identifies it. The core stores
// the rest, which would need too much memory if it were stored twice for a hundred thousand units.
type cachedUnit struct {
	metav1.ObjectMeta
	parcel *parcel
}

// parcel is the unit on its way to the loop; empty after it was taken. Copies share it, because an object in a cache does
// not change.
type parcel struct{ unit lenient.Object }

// cachedUnits returns a transform that compacts a unit and wraps it in a cachedUnit. Informers may
// transform an object twice.
func cachedUnits(c compactor) func(any) (any, error) {
	return func(object any) (any, error) {
		object, err := c.compact(object)
		unit, is := object.(lenient.Object)
		if _, done := object.(*cachedUnit); err != nil || done || !is {
			return object, err
		}
		return &cachedUnit{parcel: &parcel{unit}, ObjectMeta: metav1.ObjectMeta{
			Namespace: unit.GetNamespace(), Name: unit.GetName(), UID: unit.GetUID(), ResourceVersion: unit.GetResourceVersion()}}, nil
	}
}

// take returns the unit and drops it. There is only one handler.
func (u *cachedUnit) take() lenient.Object {
	unit := u.parcel.unit
	u.parcel.unit = nil
	return unit
}

// GetObjectKind returns an empty kind.
func (u *cachedUnit) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns a copy that shares the parcel.
func (u *cachedUnit) DeepCopyObject() runtime.Object {
	return &cachedUnit{ObjectMeta: *u.ObjectMeta.DeepCopy(), parcel: u.parcel}
}
