// Package ray is the common part of the adapters of the Ray operator's kinds: a cluster
// of one head pod and groups of workers, in RayJobs and as a separate RayCluster.
//
// Objects of both versions are decoded into the types of v1, which has every field
// of v1alpha1.
//
// Replicas that scale count at their initial size. The maximum would keep quota idle, and later growth is charged by
// its pods.
//
// The operator's default additions to pods are counted. The job does not show what an
// administrator configures the operator to add (sidecars) or to omit
// (ENABLE_INIT_CONTAINER_INJECTION=false), so this is not counted. Neither is the pod that
// cleans up Redis after a cluster with fault tolerance: it is created when all others are
// gone.
package ray

import (
	"slices"
	"strings"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/extensions/framework"
)

// Gang is Doc.Gang of these kinds.
const Gang = "pod templates have only `workloadRef`, which only Kubernetes 1.35 has, and no `schedulingGroup`"

// operator is the value of managedBy for objects that the Ray operator itself runs.
const operator = "ray.io/kuberay-operator"

// Kind returns the common description of the operator's kinds.
func Kind(name, kind, resource string) framework.Kind {
	return framework.Kind{
		Name:             name,
		GroupVersionKind: rayv1.SchemeGroupVersion.WithKind(kind),
		OlderVersions:    []string{"v1alpha1"},
		Resource:         resource,
		SuspendPath:      []string{"spec", "suspend"},
		MarkedBySuspend:  true,
		ManagedBy:        operator,
		Operators: []string{"system:serviceaccount:kuberay-operator:kuberay-operator", "system:serviceaccount:kuberay-system:kuberay-operator",
			"system:serviceaccount:ray-system:kuberay-operator"},
	}
}

// Fence returns the fence of a kind with a cluster at the path. An autoscaler changes the
// replicas of its groups.
func Fence(cluster ...string) framework.Fence {
	field := func(name string) []string { return append(slices.Clone(cluster), name) }
	job := "job." + strings.Join(cluster, ".?")
	return framework.Fence{
		// Most of these are here because the operator does not look at suspend in a cluster that it rejects.
		Frozen: [][]string{field("headGroupSpec"), field("enableInTreeAutoscaling"), field("autoscalerOptions"), field("authOptions"),
			field("gcsFaultToleranceOptions"), field("rayVersion"), field("upgradeStrategy"),
			{"metadata", "annotations", "ray.io/ft-enabled"}, {"metadata", "annotations", "ray.io/external-storage-namespace"}},
		EmptyIsUnset: true,
		Groups: []framework.Groups{{
			Path: field("workerGroupSpecs"), Key: "groupName", Sizes: []string{"replicas", "scaleStrategy"},
			// The operator creates at least minReplicas.
			Size:    "[group.?replicas.orValue(0), group.?minReplicas.orValue(0)].max()",
			Elastic: job + ".?enableInTreeAutoscaling.orValue(false) == true",
			Most:    "group.?maxReplicas.orValue(2147483647)",
		}},
	}
}

// Places returns the places of the pod annotations of a cluster at the path.
func Places(cluster ...string) []framework.Place {
	field := func(names ...string) []string { return slices.Concat(cluster, names) }
	return []framework.Place{
		{PodSet: HeadSet, Path: field("headGroupSpec", "template", "metadata", "annotations")},
		{Path: field("workerGroupSpecs"), Key: "groupName", Names: setNames, Below: []string{"template", "metadata", "annotations"}},
	}
}

// Templates returns the pod templates of a cluster.
func Templates(cluster *rayv1.RayClusterSpec) []*corev1.PodTemplateSpec {
	templates := []*corev1.PodTemplateSpec{&cluster.HeadGroupSpec.Template}
	for i := range cluster.WorkerGroupSpecs {
		templates = append(templates, &cluster.WorkerGroupSpecs[i].Template)
	}
	return templates
}

// Submitter returns the container that the operator uses to submit a job to its cluster.
func Submitter() corev1.Container {
	return container("ray-job-submitter", amounts(500, 200), amounts(1000, 1024))
}

// autoscaler returns the additional container in the head pod of a cluster with
// autoscaling. Resources in the cluster's options replace all its default resources.
func autoscaler(cluster *rayv1.RayClusterSpec) corev1.Container {
	c := container("autoscaler", amounts(500, 512), amounts(500, 512))
	if options := cluster.AutoscalerOptions; options != nil && options.Resources != nil {
		c.Resources = *options.Resources
	}
	return c
}

// waitForHead returns the last init container of each worker.
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
