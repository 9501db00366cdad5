package decision

import (
	"fmt"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/pkg/lenient"
)

// SightOf is what a job with its related object, or nil, looks like to its adapter.
func JobStateOf(adapter framework.Adapter, job, related framework.Object) framework.JobState {
	if reader, reads := adapter.(framework.RelatedReader); reads {
		return reader.StateWith(job, related)
	}
	return adapter.State(job)
}

func podsOf(adapter framework.Adapter, job, related framework.Object) (framework.Pods, error) {
	if reader, reads := adapter.(framework.RelatedReader); reads {
		return reader.PodsWith(job, related)
	}
	return adapter.Pods(job)
}

// SlimRelated drops from a related object, before it is cached, what nothing here
// reads.
func SlimRelated(reader framework.RelatedReader, related framework.Object) {
	slim(related, reader.RelatedTemplates)
}

// ReadRelatedAs has related objects read with the type that their adapter knows.
func ReadRelatedAs(kind framework.Related, reader framework.RelatedReader) lenient.Kind {
	return lenient.Kind{GroupVersionKind: kind.GroupVersionKind, Resource: kind.Resource,
		New: func() lenient.Object { return reader.NewRelated() }}
}

// ReadableRelated is what can be read of a related object, and what cannot; nil when
// nothing can.
func ReadableRelated(kind framework.Related, related framework.Object) (framework.Object, error) {
	object, fault := Readable(related)
	if fault != nil {
		fault = fmt.Errorf("%s %s: %w", kind.Kind, related.GetName(), fault)
	}
	return object, fault
}

// showRelated reads a related object, or what can be read of it; fault is what cannot.
func showRelated(adapter framework.Adapter, data []byte) (object framework.Object, fault, err error) {
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
