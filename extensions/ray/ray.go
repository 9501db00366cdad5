// Package ray is what the adapters of the Ray operator's kinds share: a cluster of
// one head pod and groups of workers, in RayJobs and as a RayCluster of its own.
//
// Objects of both versions are decoded into the types of v1, which has every field
// of v1alpha1.
//
// What the operator adds to pods is counted as it comes by default. What an
// administrator makes it add (sidecars in its configuration) or leave out
// (ENABLE_INIT_CONTAINER_INJECTION=false) no job tells, so neither can be seen here.
// The pod that cleans Redis up after a cluster with fault tolerance is not counted:
// it comes when all others are gone.
package ray

import (
	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/extensions/framework"
)

// operator is the managedBy of what the Ray operator itself runs.
const operator = "ray.io/kuberay-operator"

// Kind is what all of the operator's kinds have alike.
func Kind(name, kind, resource string) framework.Kind {
	return framework.Kind{
		Name:             name,
		GroupVersionKind: rayv1.SchemeGroupVersion.WithKind(kind),
		OlderVersions:    []string{"v1alpha1"},
		Resource:         resource,
		SuspendPath:      []string{"spec", "suspend"},
		MarkedBySuspend:  true,
		ManagedBy:        operator,
	}
}

// Templates are those of a cluster's pods.
func Templates(cluster *rayv1.RayClusterSpec) []*corev1.PodTemplateSpec {
	templates := []*corev1.PodTemplateSpec{&cluster.HeadGroupSpec.Template}
	for i := range cluster.WorkerGroupSpecs {
		templates = append(templates, &cluster.WorkerGroupSpecs[i].Template)
	}
	return templates
}

// Submitter is the container by which the operator submits a job to its cluster.
func Submitter() corev1.Container {
	return container("ray-job-submitter", amounts(500, 200), amounts(1000, 1024))
}

// autoscaler stands in the head pod of a cluster that scales itself. What the
// cluster says of it takes the place of all that it asks for by default.
func autoscaler(cluster *rayv1.RayClusterSpec) corev1.Container {
	c := container("autoscaler", amounts(500, 512), amounts(500, 512))
	if options := cluster.AutoscalerOptions; options != nil && options.Resources != nil {
		c.Resources = *options.Resources
	}
	return c
}

// waitForHead is the last init container of each worker.
func waitForHead() corev1.Container {
	return container("wait-gcs-ready", amounts(200, 256), amounts(200, 256))
}

func container(name string, requests, limits corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
}

func amounts(milliCPU, mebibytes int64) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(milliCPU, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(mebibytes<<20, resource.BinarySI),
	}
}
