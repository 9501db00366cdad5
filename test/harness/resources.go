package harness

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/extensions/registry"
)

// Resources that tests use by name.
var (
	Jobs              = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	TFJobs            = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "tfjobs"}
	PyTorchJobs       = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "pytorchjobs"}
	SparkApplications = schema.GroupVersionResource{Group: "sparkoperator.k8s.io", Version: "v1beta2", Resource: "sparkapplications"}
	RayJobs           = schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayjobs"}
	RayClusters       = schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayclusters"}
	Workflows         = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "workflows"}

	Pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	ConfigMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

	ResourceQuotas = schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}
	LimitRanges    = schema.GroupVersionResource{Version: "v1", Resource: "limitranges"}

	Trees = schema.GroupVersionResource{Group: "scheduling.sigs.k8s.io", Version: "v1beta1", Resource: "elasticquotatrees"}
)

// allJobs returns the resources of all kinds. Some may not be served.
func allJobs() []schema.GroupVersionResource {
	var all []schema.GroupVersionResource
	for _, adapter := range registry.All() {
		kind := adapter.Kind()
		all = append(all, kind.GroupVersion().WithResource(kind.Resource))
	}
	return all
}
