// Package raycluster is the adapter of ray.io RayCluster: a cluster that its owner uses until the owner suspends or
// deletes it. The clusters of RayJobs are parts of the RayJobs. A RayService is not queued, but its clusters are.
package raycluster

import (
	"errors"
	"fmt"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/ray"
)

// longestName is the length of the longest name that the operator accepts.
const longestName = 53

type adapter struct{}

// New returns the adapter.
func New() framework.Adapter { return adapter{} }

func (adapter) Kind() framework.Kind {
	kind := ray.Kind("raycluster", "RayCluster", "rayclusters")
	kind.PodLabel = framework.PodLabel{Key: "ray.io/cluster"}
	// This Job cleans up Redis when a cluster with fault tolerance is deleted.
	kind.Parts = []schema.GroupKind{{Group: batchv1.GroupName, Kind: "Job"}}
	kind.Fence = ray.Fence("spec") // it never ends
	// The operator rejects an upgradeStrategy in what looks like the cluster of a RayJob.
	kind.Fence.Frozen = append(kind.Fence.Frozen, []string{"metadata", "labels", "ray.io/originated-from-crd"})
	kind.Places = ray.Places("spec")
	kind.Doc = framework.Doc{
		Shows:  "STATUS `suspended`",
		Counts: "head and workers",
		Ready:  "state `ready`, which KubeRay writes when the head and all desired workers are ready",
		Frees:  "deletion, or suspension and the end of all pods",
		Stops:  "condition RayClusterSuspended; before KubeRay 1.3: state `suspended` and no pods",
		Gang:   ray.Gang,
	}
	return kind
}

func (adapter) New() framework.Object { return &rayv1.RayCluster{} }

func (adapter) State(object framework.Object) framework.JobState {
	cluster := framework.As[rayv1.RayCluster](object)
	status := &cluster.Status
	//lint:ignore SA1019 operators before 1.3 have no conditions by default
	ready := status.State == rayv1.Ready
	running := ready || apimeta.IsStatusConditionTrue(status.Conditions, string(rayv1.RayClusterProvisioned))
	return framework.JobState{
		Suspended: ptr.Deref(cluster.Spec.Suspend, false),
		ManagedBy: ptr.Deref(cluster.Spec.ManagedBy, ""),
		Started:   running || hasHead(status),
		Running:   running,
		// The operator writes this state when all desired pods exist and are ready. It keeps the state until the
		// cluster is suspended, even if the autoscaler adds workers. Condition RayClusterProvisioned can be true
		// before all pods are created.
		Ready:   ready,
		Stopped: stopped(cluster),
	}
}

func hasHead(status *rayv1.RayClusterStatus) bool {
	return status.Head.PodName != "" || status.Head.PodIP != ""
}

// stopped reports whether the suspended cluster has stopped. The condition is set when
// all pods are gone. By default, operators before 1.3 have only a state, which stays
// "suspended" until a resumed cluster is ready, so the pods are checked too.
func stopped(cluster *rayv1.RayCluster) bool {
	status := &cluster.Status
	if c := apimeta.FindStatusCondition(status.Conditions, string(rayv1.RayClusterSuspended)); c != nil {
		return c.Status == metav1.ConditionTrue
	}
	//lint:ignore SA1019 see above
	return status.State == rayv1.Suspended && status.ObservedGeneration >= cluster.Generation &&
		status.AvailableWorkerReplicas == 0 && !hasHead(status)
}

func (adapter) Pods(object framework.Object) (framework.Pods, error) {
	cluster := framework.As[rayv1.RayCluster](object)
	// The operator reports an invalid name only with an event, and the cluster would hold its quota without running.
	if len(cluster.Name) > longestName || len(validation.IsDNS1035Label(cluster.Name)) > 0 {
		return framework.Pods{}, fmt.Errorf("the Ray operator rejects the RayCluster name %q; create it again with a name of at most %d "+
			"lowercase letters, digits and \"-\" that starts with a letter", cluster.Name, longestName)
	}
	if err := refused(&cluster.Spec); err != nil {
		return framework.Pods{}, err
	}
	sets, err := ray.Pods(&cluster.Spec, "spec")
	return framework.Pods{Sets: sets}, err
}

// refused returns an error for a spec that the operator rejects, which it also reports only with an event.
func refused(spec *rayv1.RayClusterSpec) error {
	scales := ptr.Deref(spec.EnableInTreeAutoscaling, false)
	v2 := scales && spec.AutoscalerOptions != nil && ptr.Deref(spec.AutoscalerOptions.Version, "") == rayv1.AutoscalerVersionV2
	group := func(field string, params, resources map[string]string, restarts corev1.RestartPolicy) error {
		if v2 && restarts != "" && restarts != corev1.RestartPolicyNever {
			return fmt.Errorf("the Ray operator rejects restartPolicy %q of %s with version v2 of the autoscaler; remove it, or set it to Never", restarts, field)
		}
		if _, labels := params["labels"]; labels {
			return fmt.Errorf("the Ray operator rejects labels in rayStartParams of %s; write them in labels of the group", field)
		}
		if len(resources) > 0 && (params["num-cpus"] != "" || params["num-gpus"] != "" || params["memory"] != "" || params["resources"] != "") {
			return fmt.Errorf("the Ray operator rejects resources in both rayStartParams and resources of %s; use one of them", field)
		}
		return nil
	}
	if err := group("spec.headGroupSpec", spec.HeadGroupSpec.RayStartParams, spec.HeadGroupSpec.Resources, spec.HeadGroupSpec.Template.Spec.RestartPolicy); err != nil {
		return err
	}
	for i := range spec.WorkerGroupSpecs {
		workers := &spec.WorkerGroupSpecs[i]
		field := fmt.Sprintf("spec.workerGroupSpecs[%d]", i)
		if err := group(field, workers.RayStartParams, workers.Resources, workers.Template.Spec.RestartPolicy); err != nil {
			return err
		}
		if scales && ptr.Deref(workers.Suspend, false) {
			return fmt.Errorf("the Ray operator rejects %s.suspend with spec.enableInTreeAutoscaling; remove one of them", field)
		}
		if seconds := ptr.Deref(workers.IdleTimeoutSeconds, 0); seconds < 0 {
			return fmt.Errorf("the Ray operator rejects %s.idleTimeoutSeconds %d; it must be 0 or more", field, seconds)
		}
	}
	if options := spec.AutoscalerOptions; options != nil && ptr.Deref(options.IdleTimeoutSeconds, 0) < 0 {
		return fmt.Errorf("the Ray operator rejects spec.autoscalerOptions.idleTimeoutSeconds %d; it must be 0 or more", *options.IdleTimeoutSeconds)
	}
	return refusedAuth(spec)
}

// refusedAuth returns an error if the operator rejects spec.authOptions.
func refusedAuth(spec *rayv1.RayClusterSpec) error {
	if spec.AuthOptions == nil {
		return nil
	}
	token, kubernetes := spec.AuthOptions.Mode == rayv1.AuthModeToken, ptr.Deref(spec.AuthOptions.EnableK8sTokenAuth, false)
	least := "2.52.0"
	if kubernetes {
		least = "2.55.0"
	}
	switch given, err := version.ParseGeneric(spec.RayVersion); {
	case kubernetes && !token:
		return errors.New("the Ray operator rejects spec.authOptions.enableK8sTokenAuth without mode token; set spec.authOptions.mode to token")
	case token && (err != nil || given.LessThan(version.MustParseGeneric(least))):
		return fmt.Errorf("the Ray operator rejects spec.authOptions with spec.rayVersion %q; set spec.rayVersion to %s or later", spec.RayVersion, least)
	case kubernetes && ptr.Deref(spec.AuthOptions.SecretName, "") != "":
		return errors.New("the Ray operator rejects spec.authOptions.secretName with enableK8sTokenAuth; remove one of them")
	}
	return nil
}

func (adapter) Grown(object framework.Object, admitted map[string]int32) []framework.Growth {
	cluster := framework.As[rayv1.RayCluster](object)
	return ray.Grown(&cluster.Spec, "/spec", admitted)
}

func (adapter) Growing(object, _ framework.Object) map[string]int32 {
	return ray.Growing(&framework.As[rayv1.RayCluster](object).Spec)
}

func (adapter) KeepsGrowth() string { return "" }

func (adapter) Templates(object framework.Object) []*corev1.PodTemplateSpec {
	cluster := framework.As[rayv1.RayCluster](object)
	return ray.Templates(&cluster.Spec)
}

// SuspendPatch writes false, not null, to resume a cluster: the operator resumes it only
// if the field is false.
func (adapter) SuspendPatch(_ framework.Object, suspend bool) map[string]any {
	return map[string]any{"spec": map[string]any{"suspend": suspend}}
}
