package examples

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/extensions/registry"
)

// Kind of job that is queued.
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

// kindOf an object: the versions of one are all the same to the reader, and those
// that no longer are served are for the API server to refuse.
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
