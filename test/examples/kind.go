package examples

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/registry"
)

// Kind is a queued kind.
type Kind struct {
	Name     string
	Resource schema.GroupVersionResource
}

// kindOf returns the kind of an object, in any version. The API server rejects versions that it
// no longer serves.
func kindOf(object *unstructured.Unstructured) (Kind, bool) {
	gvk := object.GroupVersionKind()
	kind, queued := find(func(k framework.Kind) bool { return k.GroupKind() == gvk.GroupKind() })
	kind.Resource.Version = gvk.Version
	return kind, queued
}

func kindNamed(name string) (Kind, bool) {
	return find(func(k framework.Kind) bool { return k.Kind == name })
}

func find(is func(framework.Kind) bool) (Kind, bool) {
	for _, adapter := range registry.All() {
		if kind := adapter.Kind(); is(kind) {
			return Kind{kind.Kind, kind.GroupVersion().WithResource(kind.Resource)}, true
		}
	}
	return Kind{}, false
}
