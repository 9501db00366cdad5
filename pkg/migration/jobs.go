package migration

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// JobKind is a kind of job that kube-queue queues.
type JobKind struct {
	Group, Version, Kind string
	// Extension is its name in --enabled-extensions.
	Extension string
}

// jobKinds are all kinds. An empty version matches any version.
var jobKinds = []JobKind{
	{"", "", "Pod", "pod"},
	{"argoproj.io", "", "Workflow", "workflow"},
	{"batch", "", "Job", "job"},
	{"jobset.x-k8s.io", "", "JobSet", "jobset"},
	{"kubeflow.org", "", "JAXJob", "jaxjob"},
	{"kubeflow.org", "v1", "MPIJob", "mpiv1"},
	{"kubeflow.org", "v2beta1", "MPIJob", "mpiv2beta1"},
	{"kubeflow.org", "", "PaddleJob", "paddlejob"},
	{"kubeflow.org", "", "PyTorchJob", "pytorchjob"},
	{"kubeflow.org", "", "TFJob", "tfjob"},
	{"kubeflow.org", "", "XGBoostJob", "xgboostjob"},
	{"ray.io", "", "RayCluster", "raycluster"},
	{"ray.io", "", "RayJob", "rayjob"},
	{"sparkoperator.k8s.io", "", "SparkApplication", "sparkapp"},
	{"trainer.kubeflow.org", "", "TrainJob", "trainjob"},
}

// JobKinds returns all kinds of jobs.
func JobKinds() []JobKind { return slices.Clone(jobKinds) }

// KindOfJob returns the kind of a job; false if kube-queue does not queue jobs of this kind, or if the object is a pod
// that another object controls.
func KindOfJob(object *unstructured.Unstructured) (JobKind, bool) {
	gvk := object.GroupVersionKind()
	at := slices.IndexFunc(jobKinds, func(k JobKind) bool {
		return k.Group == gvk.Group && k.Kind == gvk.Kind && (k.Version == "" || k.Version == gvk.Version)
	})
	if at < 0 || jobKinds[at].Kind == "Pod" && metav1.GetControllerOf(object) != nil {
		return JobKind{}, false
	}
	return jobKinds[at], true
}

// Applicable returns a copy of a job without the fields that the API server adds, so that it can be created again.
func Applicable(object *unstructured.Unstructured) *unstructured.Unstructured {
	job := object.DeepCopy()
	delete(job.Object, "status")
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
		"deletionGracePeriodSeconds", "managedFields", "selfLink", "ownerReferences", "finalizers"} {
		unstructured.RemoveNestedField(job.Object, "metadata", field)
	}
	annotations := job.GetAnnotations()
	delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
	job.SetAnnotations(OrNil(annotations))
	return job
}

// OrNil returns labels or annotations, or nil if there are none. Nil removes the field.
func OrNil(keys map[string]string) map[string]string {
	if len(keys) == 0 {
		return nil
	}
	return keys
}

// HasKey reports whether the metadata of an object, or of a template in it, has a matching label or annotation.
func HasKey(object *unstructured.Unstructured, is func(key string) bool) (has bool) {
	Walk(object.Object, "", func(_ string, metadata map[string]any) {
		for _, field := range []string{"labels", "annotations"} {
			keys, _ := metadata[field].(map[string]any)
			has = has || slices.ContainsFunc(slices.Collect(maps.Keys(keys)), is)
		}
	})
	return has
}

// Walk calls visit for each metadata below the field of an object, such as those of pod templates, in the order of
// their paths.
func Walk(value any, path string, visit func(path string, metadata map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			below := strings.TrimPrefix(path+"."+key, ".")
			if metadata, is := v[key].(map[string]any); is && key == "metadata" {
				visit(below, metadata)
				continue
			}
			Walk(v[key], below, visit)
		}
	case []any:
		for i, element := range v {
			Walk(element, path+"["+strconv.Itoa(i)+"]", visit)
		}
	}
}
