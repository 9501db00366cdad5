package ray

import (
	"fmt"
	"math"
	"slices"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/extensions/framework"
)

// Names of groups of pods; groups of workers go by their own.
const (
	HeadSet      = "head"
	SubmitterSet = "submitter"
	// renamed parts a group of workers from another group of the same name.
	renamed = "worker-"
)

// Pods are the groups of pods of a cluster: its head, with what stands beside it,
// and its workers as the spec orders them. at is where in the object the cluster's
// spec is, for errors.
func Pods(cluster *rayv1.RayClusterSpec, at string, besideHead ...corev1.Container) ([]framework.PodSet, error) {
	if err := checkTemplate(&cluster.HeadGroupSpec.Template, at+".headGroupSpec"); err != nil {
		return nil, err
	}
	if ptr.Deref(cluster.EnableInTreeAutoscaling, false) {
		besideHead = append(slices.Clip(besideHead), autoscaler(cluster))
	}
	head := cluster.HeadGroupSpec.Template
	head.Spec.Containers = slices.Concat(head.Spec.Containers, besideHead)
	names, err := setNames(cluster.WorkerGroupSpecs, at)
	if err != nil {
		return nil, err
	}
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

// checkTemplate refuses what the operator would refuse: it builds all pods around
// their first container.
func checkTemplate(template *corev1.PodTemplateSpec, where string) error {
	if len(template.Spec.Containers) == 0 {
		return fmt.Errorf("%s.template has no container, so the operator would refuse it: give it the container that runs Ray", where)
	}
	return nil
}

// setNames are the names of the groups of workers as groups of pods, no two alike.
func setNames(groups []rayv1.WorkerGroupSpec, at string) ([]string, error) {
	taken := map[string]bool{}
	for i, group := range groups {
		switch {
		case group.GroupName == "":
			return nil, fmt.Errorf("%s.workerGroupSpecs[%d].groupName is empty: name the group", at, i)
		case taken[group.GroupName]:
			return nil, fmt.Errorf("%s.workerGroupSpecs: two groups are named %q: give each a name of its own", at, group.GroupName)
		}
		taken[group.GroupName] = true
	}
	names := make([]string, len(groups))
	for i, group := range groups {
		name := group.GroupName
		if name == HeadSet || name == SubmitterSet {
			for taken[name] {
				name = renamed + name
			}
			taken[name] = true
		}
		names[i] = name
	}
	return names, nil
}

// workers is how many pods a group starts with: as many replicas as are asked for,
// within the bounds, each of some hosts.
func workers(group *rayv1.WorkerGroupSpec, where string) (int32, error) {
	least, most := ptr.Deref(group.MinReplicas, 0), ptr.Deref(group.MaxReplicas, math.MaxInt32)
	replicas := ptr.Deref(group.Replicas, least)
	// Versions before v1 have no such field, and one pod for each replica. The same
	// comes of 0 in a RayJob, whose operator leaves it out of the job's cluster.
	hosts := group.NumOfHosts
	if hosts == 0 {
		hosts = 1
	}
	for _, number := range []struct {
		field string
		value int32
	}{{"replicas", replicas}, {"minReplicas", least}, {"maxReplicas", most}, {"numOfHosts", hosts}} {
		if number.value < 0 {
			return 0, fmt.Errorf("%s.%s is negative: %d", where, number.field, number.value)
		}
	}
	if least > most {
		return 0, fmt.Errorf("%s: minReplicas %d is more than maxReplicas %d, so the operator would refuse it", where, least, most)
	}
	if ptr.Deref(group.Suspend, false) {
		return 0, nil
	}
	pods := int64(min(max(replicas, least), most)) * int64(hosts)
	if pods > math.MaxInt32 {
		return 0, fmt.Errorf("%s: %d replicas of %d hosts each are more pods than can be counted", where, min(max(replicas, least), most), hosts)
	}
	return int32(pods), nil
}
