package rayjob

import (
	"slices"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/extensions/framework"
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
// are fewer.
func (a adapter) PodsScaled(object, scaled framework.Object) (framework.Pods, error) {
	job, cluster := framework.As[job](object), framework.As[rayv1.RayCluster](scaled)
	if job.Spec.RayClusterSpec == nil {
		return a.Pods(object)
	}
	spec := *job.Spec.RayClusterSpec
	spec.WorkerGroupSpecs = slices.Clone(spec.WorkerGroupSpecs)
	for i := range spec.WorkerGroupSpecs {
		group := &spec.WorkerGroupSpecs[i]
		at := slices.IndexFunc(cluster.Spec.WorkerGroupSpecs, func(g rayv1.WorkerGroupSpec) bool { return g.GroupName == group.GroupName })
		if at < 0 {
			continue
		}
		now := cluster.Spec.WorkerGroupSpecs[at].Replicas
		if now != nil && *now < ptr.Deref(group.Replicas, ptr.Deref(group.MinReplicas, 0)) {
			group.Replicas = now
		}
	}
	changed := *job
	changed.Spec.RayClusterSpec = &spec
	return a.Pods(&changed)
}
