package ray

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/extensions/framework"
)

// Names of pod sets; worker groups use their own names.
const (
	HeadSet      = "head"
	SubmitterSet = "submitter"
	// renamed is the prefix for a worker group that has one of the above names.
	renamed = "worker-"
)

// Pods returns the pod sets of a cluster: its head, with the additional containers, and
// its workers in the order of the spec. For errors, at is the path of the cluster's spec
// in the object.
func Pods(cluster *rayv1.RayClusterSpec, at string, sidecars ...corev1.Container) ([]framework.PodSet, error) {
	if err := checkTemplate(&cluster.HeadGroupSpec.Template, at+".headGroupSpec"); err != nil {
		return nil, err
	}
	if ptr.Deref(cluster.EnableInTreeAutoscaling, false) {
		sidecars = append(slices.Clip(sidecars), autoscaler(cluster))
	}
	head := cluster.HeadGroupSpec.Template
	head.Spec.Containers = slices.Concat(head.Spec.Containers, sidecars)
	groups, err := groupNames(cluster.WorkerGroupSpecs, at)
	if err != nil {
		return nil, err
	}
	names := setNames(groups)
	sets := []framework.PodSet{{Name: HeadSet, Count: 1, Template: &head}}
	for i := range cluster.WorkerGroupSpecs {
		group := &cluster.WorkerGroupSpecs[i]
		where := fmt.Sprintf("%s.workerGroupSpecs[%d]", at, i)
		if err := checkTemplate(&group.Template, where); err != nil {
			return nil, err
		}
		count, err := workers(group, where)
		if err != nil {
			return nil, err
		}
		worker := group.Template
		worker.Spec.InitContainers = slices.Concat(worker.Spec.InitContainers, []corev1.Container{waitForHead()})
		sets = append(sets, framework.PodSet{Name: names[i], Count: count, Template: &worker})
	}
	return sets, nil
}

// Grown implements framework.Autoscaled for a cluster whose spec is at the JSON pointer.
func Grown(cluster *rayv1.RayClusterSpec, at string, admitted map[string]int32) []framework.Growth {
	if !ptr.Deref(cluster.EnableInTreeAutoscaling, false) {
		return nil
	}
	var grown []framework.Growth
	for i, podSet := range setNames(groupsOf(cluster)) {
		group := &cluster.WorkerGroupSpecs[i]
		pods, is := admitted[podSet]
		was := pods / max(group.NumOfHosts, 1)
		if now := ptr.Deref(group.Replicas, 0); is && now > was {
			grown = append(grown, framework.Growth{PodSet: podSet, Field: fmt.Sprintf("%s/workerGroupSpecs/%d/replicas", at, i), Now: now, Admitted: was})
		}
	}
	return grown
}

// checkTemplate rejects a template without containers as the operator does: its first
// container runs Ray.
func checkTemplate(template *corev1.PodTemplateSpec, where string) error {
	if len(template.Spec.Containers) == 0 {
		return fmt.Errorf("%s.template.spec.containers is empty; add the container that runs Ray", where)
	}
	return nil
}

// groupNames returns the names of the worker groups. They must be unique.
func groupNames(groups []rayv1.WorkerGroupSpec, at string) ([]string, error) {
	names := make([]string, len(groups))
	taken := map[string]bool{}
	for i, group := range groups {
		switch {
		case group.GroupName == "":
			return nil, fmt.Errorf("%s.workerGroupSpecs[%d].groupName is empty; set a name", at, i)
		case taken[group.GroupName]:
			return nil, fmt.Errorf("%s.workerGroupSpecs: groupName %q is used twice; give each group its own name", at, group.GroupName)
		}
		taken[group.GroupName] = true
		names[i] = group.GroupName
	}
	return names, nil
}

// setNames returns unique names of pod sets for the worker groups.
func setNames(groups []string) []string {
	taken := map[string]bool{}
	for _, group := range groups {
		taken[group] = true
	}
	names := make([]string, len(groups))
	for i, name := range groups {
		if name == HeadSet || name == SubmitterSet {
			for taken[name] {
				name = renamed + name
			}
			taken[name] = true
		}
		names[i] = name
	}
	return names
}

// Growing implements framework.Growing: the number of workers can change. The hosts of a replica are useful only
// together, so groups with several are left out.
func Growing(cluster *rayv1.RayClusterSpec) map[string]int32 {
	growing := map[string]int32{}
	for i, podSet := range setNames(groupsOf(cluster)) {
		group := &cluster.WorkerGroupSpecs[i]
		if pods, err := workers(group, ""); err == nil && group.NumOfHosts <= 1 {
			growing[podSet] = pods
		}
	}
	return growing
}

func groupsOf(cluster *rayv1.RayClusterSpec) []string {
	groups := make([]string, len(cluster.WorkerGroupSpecs))
	for i := range cluster.WorkerGroupSpecs {
		groups[i] = cluster.WorkerGroupSpecs[i].GroupName
	}
	return groups
}

// workers returns how many pods a group starts with: the requested replicas, within
// minReplicas and maxReplicas, times the hosts of each.
func workers(group *rayv1.WorkerGroupSpec, where string) (int32, error) {
	least, most := ptr.Deref(group.MinReplicas, 0), ptr.Deref(group.MaxReplicas, math.MaxInt32)
	replicas := ptr.Deref(group.Replicas, least)
	// Versions before v1 have no such field, and one pod per replica. A 0 in a RayJob means the same, because the
	// operator omits it in the job's cluster.
	hosts := cmp.Or(group.NumOfHosts, 1)
	for _, number := range []struct {
		field string
		value int32
	}{{"replicas", replicas}, {"minReplicas", least}, {"maxReplicas", most}, {"numOfHosts", hosts}} {
		if number.value < 0 {
			return 0, fmt.Errorf("%s.%s must be 0 or more, not %d", where, number.field, number.value)
		}
	}
	if least > most {
		return 0, fmt.Errorf("%s: minReplicas %d is greater than maxReplicas %d; lower minReplicas or raise maxReplicas", where, least, most)
	}
	if ptr.Deref(group.Suspend, false) {
		return 0, nil
	}
	pods := int64(min(max(replicas, least), most)) * int64(hosts)
	if pods > math.MaxInt32 {
		return 0, fmt.Errorf("%s: %d replicas with %d hosts each exceed the maximum of %d pods; reduce them",
			where, min(max(replicas, least), most), hosts, math.MaxInt32)
	}
	return int32(pods), nil
}
