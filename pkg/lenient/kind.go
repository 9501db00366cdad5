package lenient

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Object is an API object of any kind.
type Object interface {
	runtime.Object
	metav1.Object
}

// Kind describes the objects to decode. All fields are required.
type Kind struct {
	schema.GroupVersionKind
	// Resource is the name of the kind in paths, such as "queueunits".
	Resource string
	// New returns a pointer to an empty object.
	New func() Object
}

// Unreadable represents an object that cannot be decoded into its type.
type Unreadable struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	// Partial is the object in the type of the kind, without the parts that cannot be decoded.
	Partial Object
	// Err reports what cannot be decoded, with the path of each field.
	Err error
}

// DeepCopyObject returns a copy that shares the error, because it never changes.
func (u *Unreadable) DeepCopyObject() runtime.Object {
	out := &Unreadable{TypeMeta: u.TypeMeta, Err: u.Err}
	u.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	if u.Partial != nil {
		out.Partial = u.Partial.DeepCopyObject().(Object)
	}
	return out
}
