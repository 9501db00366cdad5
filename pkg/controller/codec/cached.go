package codec

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/pkg/lenient"
)

var _ lenient.Object = (*Cached)(nil)

// Cached is the part of a unit that identifies it. The informer stores only this. The core stores the rest: storing it
// twice for a hundred thousand units would take too much memory.
type Cached struct {
	metav1.ObjectMeta
	parcel *parcel
}

// parcel is the unit on its way to the loop; empty once taken. Copies share it, because an object in a cache does not
// change.
type parcel struct{ unit lenient.Object }

// Transform compacts a unit and wraps it in a Cached. Informers may transform an object twice.
func (c Compactor) Transform(object any) (any, error) {
	object, err := c.compact(object)
	unit, is := object.(lenient.Object)
	if _, done := object.(*Cached); err != nil || done || !is {
		return object, err
	}
	return &Cached{parcel: &parcel{unit}, ObjectMeta: metav1.ObjectMeta{
		Namespace: unit.GetNamespace(), Name: unit.GetName(), UID: unit.GetUID(), ResourceVersion: unit.GetResourceVersion()}}, nil
}

// Take returns the unit and drops it. There is only one handler.
func (u *Cached) Take() lenient.Object {
	unit := u.parcel.unit
	u.parcel.unit = nil
	return unit
}

// GetObjectKind returns an empty kind.
func (u *Cached) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns a copy that shares the parcel.
func (u *Cached) DeepCopyObject() runtime.Object {
	return &Cached{ObjectMeta: *u.ObjectMeta.DeepCopy(), parcel: u.parcel}
}
