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

func kinds() []Kind {
	var all []Kind
	for _, adapter := range registry.All() {
		kind := adapter.Kind()
		all = append(all, Kind{kind.Kind, kind.GroupVersion().WithResource(kind.Resource)})
	}
	return all
}

// kindOf returns the kind of an object, in any version. The API server rejects versions that it
// no longer serves.
func kindOf(object *unstructured.Unstructured) (Kind, bool) {
	gvk := object.GroupVersionKind()
	for _, kind := range kinds() {
		if kind.Name == gvk.Kind && kind.Resource.Group == gvk.Group {
			kind.Resource.Version = gvk.Version
			return kind, true
		}
	}
	return Kind{}, false
}

func kindNamed(name string) (Kind, bool) {
	for _, kind := range kinds() {
		if kind.Name == name {
			return kind, true
		}
	}
	return Kind{}, false
}
