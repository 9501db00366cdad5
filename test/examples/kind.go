package examples

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/extensions/registry"
)

// Kind is a queued kind.
type Kind struct {
	Name     string
	Resource schema.GroupVersionResource
}

// find returns the kind that is looked for.
func find(is func(Kind) bool) (Kind, bool) {
	for _, adapter := range registry.All() {
		kind := adapter.Kind()
		if found := (Kind{kind.Kind, kind.GroupVersion().WithResource(kind.Resource)}); is(found) {
			return found, true
		}
	}
	return Kind{}, false
}

// kindOf returns the kind of an object, in any version. The API server rejects versions that it
// no longer serves.
func kindOf(object *unstructured.Unstructured) (Kind, bool) {
	gvk := object.GroupVersionKind()
	kind, queued := find(func(k Kind) bool { return k.Name == gvk.Kind && k.Resource.Group == gvk.Group })
	kind.Resource.Version = gvk.Version
	return kind, queued
}

func kindNamed(name string) (Kind, bool) {
	return find(func(k Kind) bool { return k.Name == name })
}
