package rayjob

import (
	"slices"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/ray"
)

// The operator copies spec.rayClusterSpec to the RayCluster of the job. With
// enableInTreeAutoscaling, the autoscaler changes the replicas there and not in the job.

func (adapter) NewScaled() framework.Object { return &rayv1.RayCluster{} }

// SlimScaled retains the names and replicas of the worker groups.
func (adapter) SlimScaled(object framework.Object) {
	cluster := framework.As[rayv1.RayCluster](object)
	groups := make([]rayv1.WorkerGroupSpec, len(cluster.Spec.WorkerGroupSpecs))
	for i, group := range cluster.Spec.WorkerGroupSpecs {
		groups[i] = rayv1.WorkerGroupSpec{GroupName: group.GroupName, Replicas: group.Replicas}
	}
	cluster.Annotations, cluster.Labels = nil, nil
	cluster.Spec, cluster.Status = rayv1.RayClusterSpec{WorkerGroupSpecs: groups}, rayv1.RayClusterStatus{}
}

// PodsScaled returns the pods of the job with the replicas of its RayCluster where these
// are lower.
func (a adapter) PodsScaled(object, scaled framework.Object) (framework.Pods, error) {
	changed := *framework.As[job](object)
	changed.Spec.RayClusterSpec = resized(changed.Spec.RayClusterSpec, scaled, func(now, own int32) bool { return now < own })
	return a.Pods(&changed)
}

func (adapter) Growing(object, scaled framework.Object) map[string]int32 {
	spec := framework.As[job](object).Spec.RayClusterSpec
	if spec == nil {
		return nil
	}
	return ray.Growing(resized(spec, scaled, func(int32, int32) bool { return true }))
}

func (adapter) KeepsGrowth() string { return "" }

// resized returns the spec of a cluster with the replicas of the RayCluster where takes returns true.
func resized(cluster *rayv1.RayClusterSpec, scaled framework.Object, takes func(now, own int32) bool) *rayv1.RayClusterSpec {
	if cluster == nil || scaled == nil {
		return cluster
	}
	spec, groups := *cluster, framework.As[rayv1.RayCluster](scaled).Spec.WorkerGroupSpecs
	spec.WorkerGroupSpecs = slices.Clone(spec.WorkerGroupSpecs)
	for i := range spec.WorkerGroupSpecs {
		group := &spec.WorkerGroupSpecs[i]
		at := slices.IndexFunc(groups, func(g rayv1.WorkerGroupSpec) bool { return g.GroupName == group.GroupName })
		if at < 0 || groups[at].Replicas == nil {
			continue
		}
		if takes(*groups[at].Replicas, ptr.Deref(group.Replicas, ptr.Deref(group.MinReplicas, 0))) {
			group.Replicas = groups[at].Replicas
		}
	}
	return &spec
}
