package decision

import (
	"fmt"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/pkg/lenient"
)

// JobStateOf returns the state of a job with its related object, which can be nil.
func JobStateOf(adapter framework.Adapter, job, related framework.Object) framework.JobState {
	if reader, reads := adapter.(framework.RelatedReader); reads {
		return reader.StateWith(job, related)
	}
	return adapter.State(job)
}

// Pods returns the pods of a job with its related object, which can be nil. The templates have only the fields that the
// objects have.
func Pods(adapter framework.Adapter, job, related framework.Object) (framework.Pods, error) {
	if reader, reads := adapter.(framework.RelatedReader); reads {
		return reader.PodsWith(job, related)
	}
	return adapter.Pods(job)
}

// SlimRelated removes unused fields from a related object before it is cached.
func SlimRelated(reader framework.RelatedReader, related framework.Object) {
	slim(related, reader.RelatedTemplates)
}

// ReadRelatedAs returns how related objects are decoded into the type of the adapter.
func ReadRelatedAs(kind framework.Related, reader framework.RelatedReader) lenient.Kind {
	return lenient.Kind{GroupVersionKind: kind.GroupVersionKind, Resource: kind.Resource,
		New: func() lenient.Object { return reader.NewRelated() }}
}

// ReadableRelated returns the readable part of a related object, and an error for the
// unreadable part; nil if nothing is readable.
func ReadableRelated(kind framework.Related, related framework.Object) (framework.Object, error) {
	object, fault := Readable(related)
	if fault != nil {
		fault = fmt.Errorf("%s %s: %w", kind.Kind, related.GetName(), fault)
	}
	return object, fault
}

// decodeRelated reads a related object, or its readable part; fault is the error about the unreadable part.
func decodeRelated(adapter framework.Adapter, data []byte) (object framework.Object, fault, err error) {
	reader, reads := adapter.(framework.RelatedReader)
	if !reads || len(data) == 0 {
		return nil, nil, nil
	}
	kind := adapter.Kind().Related
	whole, err := ReadRelatedAs(kind, reader).Decode(data)
	if err != nil {
		return nil, nil, err
	}
	SlimRelated(reader, whole)
	object, fault = ReadableRelated(kind, whole)
	return object, fault, nil
}
