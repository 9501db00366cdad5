package lab

import "k8s.io/apimachinery/pkg/runtime/schema"

// Resources of the jobs that are queued, and of quota trees.
var (
	Jobs              = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	TFJobs            = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "tfjobs"}
	PyTorchJobs       = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "pytorchjobs"}
	MPIJobsV1         = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "mpijobs"}
	MPIJobsV2beta1    = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v2beta1", Resource: "mpijobs"}
	SparkApplications = schema.GroupVersionResource{Group: "sparkoperator.k8s.io", Version: "v1beta2", Resource: "sparkapplications"}
	RayJobs           = schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayjobs"}
	RayClusters       = schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayclusters"}
	JobSets           = schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"}
	Workflows         = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "workflows"}

	// Pods are what jobs are made of in the end.
	Pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

	// ResourceQuotas and LimitRanges are of the API server's own.
	ResourceQuotas = schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}
	LimitRanges    = schema.GroupVersionResource{Version: "v1", Resource: "limitranges"}

	trees = schema.GroupVersionResource{Group: "scheduling.sigs.k8s.io", Version: "v1beta1", Resource: "elasticquotatrees"}
)

// allJobs are cleared away after each test, where they are served.
var allJobs = []schema.GroupVersionResource{
	Jobs, TFJobs, PyTorchJobs, MPIJobsV1, MPIJobsV2beta1, SparkApplications, RayJobs, RayClusters, JobSets, Workflows,
}
