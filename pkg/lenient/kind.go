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

// Kind is what is read. All of it is needed.
type Kind struct {
	schema.GroupVersionKind
	// Resource is the kind's name in paths, as "queueunits".
	Resource string
	// New returns an empty object, a pointer, to decode into.
	New func() Object
}

// Unreadable stands for an object that cannot be decoded into its type.
type Unreadable struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	// Partial is the object, of the kind's type, without what cannot be read.
	Partial Object
	// Err says what cannot be read, with the path of each field.
	Err error
}

// DeepCopyObject shares the error, which nothing changes.
func (u *Unreadable) DeepCopyObject() runtime.Object {
	out := &Unreadable{TypeMeta: u.TypeMeta, Err: u.Err}
	u.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	if u.Partial != nil {
		out.Partial = u.Partial.DeepCopyObject().(Object)
	}
	return out
}

// List is what an informer is given: objects of the kind's type, and Unreadables, as they
// were transformed.
type List struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []runtime.Object
}

// DeepCopyObject copies the list.
func (l *List) DeepCopyObject() runtime.Object {
	out := &List{TypeMeta: l.TypeMeta, Items: make([]runtime.Object, len(l.Items))}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i, item := range l.Items {
		out.Items[i] = item.DeepCopyObject()
	}
	return out
}
