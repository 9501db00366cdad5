package framework

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A CRD schema lets through what Go types do not, as the quantity "1e1.5" or,
// where a schema validates little, nearly anything. Decoded as a typed list, one
// such object would stop its whole kind for everybody. So objects are read raw,
// with their metadata only, and each is decoded on its own.

// raw is an object of any kind of which only the metadata is decoded.
type raw struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	data []byte
}

type rawList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []raw `json:"items"`
}

// UnmarshalJSON keeps the text beside what it says of itself.
func (r *raw) UnmarshalJSON(data []byte) error {
	var partial metav1.PartialObjectMetadata
	if err := json.Unmarshal(data, &partial); err != nil {
		return fmt.Errorf("reading the metadata of an object: %w", err)
	}
	r.TypeMeta, r.ObjectMeta = partial.TypeMeta, partial.ObjectMeta
	r.data = append([]byte(nil), data...)
	return nil
}

// MarshalJSON gives the text back.
func (r *raw) MarshalJSON() ([]byte, error) { return r.data, nil }

// DeepCopyObject shares the text, which nothing changes.
func (r *raw) DeepCopyObject() runtime.Object {
	out := &raw{TypeMeta: r.TypeMeta, data: r.data}
	r.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return out
}

// DeepCopyObject copies the list.
func (l *rawList) DeepCopyObject() runtime.Object {
	out := &rawList{TypeMeta: l.TypeMeta, Items: make([]raw, len(l.Items))}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*raw)
	}
	return out
}

// undecodable is a job that its adapter cannot read.
type undecodable struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	err error
}

// DeepCopyObject copies the metadata.
func (u *undecodable) DeepCopyObject() runtime.Object {
	out := &undecodable{TypeMeta: u.TypeMeta, err: u.err}
	u.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return out
}

// decode reads the job with the type that its adapter knows.
func (r *raw) decode(adapter Adapter) Object {
	job := adapter.New()
	if err := json.Unmarshal(r.data, job); err != nil {
		return &undecodable{TypeMeta: r.TypeMeta, ObjectMeta: r.ObjectMeta, err: err}
	}
	return job
}
