package examples

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/test/lab"
)

// Kind of job that is queued.
type Kind struct {
	Name     string
	Resource schema.GroupVersionResource
}

func kinds() []Kind {
	return []Kind{
		{"TFJob", lab.TFJobs},
		{"PyTorchJob", lab.PyTorchJobs},
		{"MPIJob", lab.MPIJobsV1},
		{"MPIJob", lab.MPIJobsV2beta1},
		{"SparkApplication", lab.SparkApplications},
		{"RayJob", lab.RayJobs},
		{"RayCluster", lab.RayClusters},
		{"JobSet", lab.JobSets},
		{"Workflow", lab.Workflows},
		{"Job", lab.Jobs},
	}
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
