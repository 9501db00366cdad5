// Package rayjob is the adapter of ray.io RayJob: a job with a cluster of its own.
//
// The operator permanently rejects a suspended job that does not shut down its cluster
// when it finishes. So a hold sets shutdownAfterJobFinishes, and the release restores the
// previous value: see wellknown.ShutdownAnnotation. The hold policy does the same at
// admission.
//
// A job keeps its quota while its cluster exists. A job that the operator rejected while it was held has never started,
// so it has not ended, and its unit stays. rayjobv1alpha1 is another name of the same kind: two kinds would give a job
// two units.
package rayjob

import (
	"errors"
	"fmt"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/ray"
)

type adapter struct {
	// shutsDown is whether a released job gets shutdownAfterJobFinishes if its owner has not set it.
	shutsDown bool
}

// New returns the adapter.
func New() framework.Adapter { return adapter{} }

// ShuttingDown returns an adapter that makes the operator delete the clusters of ended jobs that would otherwise keep
// them, and their quota.
func ShuttingDown() framework.Adapter { return adapter{shutsDown: true} }

func (adapter) Kind() framework.Kind {
	kind := ray.Kind("rayjob", "RayJob", "rayjobs")
	kind.OtherNames = []string{"rayjobv1alpha1"}
	kind.Remains, kind.RemainsKind = "rayclusters", "RayCluster"
	kind.PodLabel = framework.PodLabel{Key: "ray.io/originated-from-cr-name"}
	kind.Parts = []schema.GroupKind{{Group: kind.Group, Kind: "RayCluster"}, {Group: batchv1.GroupName, Kind: "Job"}} // the submitter
	kind.Fence = ray.Fence("spec", "rayClusterSpec")
	kind.Fence.Frozen = append(kind.Fence.Frozen, []string{"spec", "submissionMode"}, []string{"spec", "submitterPodTemplate"},
		[]string{"spec", "submitterConfig"}, []string{"spec", "clusterSelector"}, []string{"spec", "deletionStrategy"}, []string{"spec", "deletionPolicy"},
		[]string{"spec", "runtimeEnvYAML"}, []string{"spec", "rayClusterSpec", "suspend"})
	kind.Fence.Valid = []framework.Condition{{
		Name: "spec.shutdownAfterJobFinishes, spec.ttlSecondsAfterFinished, spec.backoffLimit, spec.activeDeadlineSeconds, spec.preRunningDeadlineSeconds",
		Expression: `(job.spec.?ttlSecondsAfterFinished.orValue(0) == 0
  || job.spec.?ttlSecondsAfterFinished.orValue(0) > 0 && job.spec.?shutdownAfterJobFinishes.orValue(false) == true)
&& (job.spec.?backoffLimit.orValue(0) == 0 || job.spec.?backoffLimit.orValue(0) > 0 && job.spec.?submissionMode.orValue('') != 'InteractiveMode')
&& job.spec.?activeDeadlineSeconds.orValue(1) > 0 && job.spec.?preRunningDeadlineSeconds.orValue(1) > 0`,
	}}
	// The cluster of a job in state ValidationFailed can still run.
	kind.Fence.Ended = framework.Ended{Path: []string{"status", "jobDeploymentStatus"}, Values: []string{
		string(rayv1.JobDeploymentStatusComplete), string(rayv1.JobDeploymentStatusFailed)}}
	kind.Sets = []framework.Setting{{
		Path: []string{"spec", "shutdownAfterJobFinishes"}, Value: true, Annotation: wellknown.ShutdownAnnotation,
		Why: "The operator permanently rejects a suspended RayJob without shutdownAfterJobFinishes.",
	}}
	kind.Holdable = holdable()
	kind.Maps = [][]string{{"spec", "deletionStrategy"}, {"spec", "deletionStrategy", "onSuccess"}, {"spec", "deletionStrategy", "onFailure"}}
	kind.Places = append(ray.Places("spec", "rayClusterSpec"),
		framework.Place{PodSet: ray.SubmitterSet, Path: []string{"spec", "submitterPodTemplate", "metadata", "annotations"}})
	kind.Doc = framework.Doc{
		Shows:  "DEPLOYMENT STATUS `Suspended`",
		Counts: "head, workers, submitter",
		Ready:  "state Running or Waiting, reached when head and workers are ready; the submitter does not count",
		Frees:  "state Complete, Failed or ValidationFailed, and its RayCluster is deleted",
		Stops:  "state Suspended, and its RayCluster is deleted",
		Gang:   ray.Gang,
	}
	return kind
}

func (adapter) New() framework.Object { return &job{} }

func (a adapter) Pods(object framework.Object) (framework.Pods, error) {
	job := framework.As[job](object)
	if err := a.check(job); err != nil {
		return framework.Pods{}, err
	}
	pod, sidecars, err := submitter(&job.Spec.RayJobSpec)
	if err != nil {
		return framework.Pods{}, err
	}
	var sets []framework.PodSet
	if len(job.Spec.ClusterSelector) == 0 {
		if sets, err = ray.Pods(job.Spec.RayClusterSpec, "spec.rayClusterSpec", sidecars...); err != nil {
			return framework.Pods{}, err
		}
	}
	if pod != nil {
		sets = append(sets, framework.PodSet{Name: ray.SubmitterSet, Count: 1, Template: pod})
	}
	return framework.Pods{Sets: sets}, nil
}

// check returns an error if the job can never run.
func (a adapter) check(job *job) error {
	spec, status := &job.Spec, &job.Status
	switch {
	case refused(status) && spec.Suspend:
		return fmt.Errorf("the Ray operator rejected the job and does not check it again; delete the job, fix its manifest and create it again (message of the operator: %s)", status.Message)
	case len(spec.ClusterSelector) > 0:
		return nil
	case spec.RayClusterSpec == nil:
		return errors.New("spec.rayClusterSpec is missing; set it to the cluster of the job")
	case spec.RayClusterSpec.Suspend != nil && *spec.RayClusterSpec.Suspend:
		return errors.New("spec.rayClusterSpec.suspend is true, so the cluster of the job can never start; remove the field, and use spec.suspend to hold the job")
	case job.Annotations[wellknown.ShutdownAnnotation] == "false" && spec.TTLSecondsAfterFinished > 0 && !a.setsShutdown(job):
		return fmt.Errorf("spec.ttlSecondsAfterFinished requires spec.shutdownAfterJobFinishes, which was not set when the job was created, so the Ray operator rejects the job; "+
			"remove annotation %s to set it, or set spec.ttlSecondsAfterFinished to 0", wellknown.ShutdownAnnotation)
	}
	return nil
}

// submitter returns what submits the job to its cluster: a separate pod, a sidecar of the
// head, or nothing that requests resources.
func submitter(spec *rayv1.RayJobSpec) (pod *corev1.PodTemplateSpec, sidecars []corev1.Container, err error) {
	switch spec.SubmissionMode {
	case rayv1.HTTPMode, rayv1.InteractiveMode:
		return nil, nil, nil
	case rayv1.SidecarMode:
		return nil, []corev1.Container{ray.Submitter()}, nil
	case rayv1.K8sJobMode, "": // versions before v1 have only this mode
	default:
		return nil, nil, fmt.Errorf("spec.submissionMode must be %s, %s, %s or %s, not %q",
			rayv1.K8sJobMode, rayv1.SidecarMode, rayv1.HTTPMode, rayv1.InteractiveMode, spec.SubmissionMode)
	}
	if spec.SubmitterPodTemplate == nil {
		return &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{ray.Submitter()}}}, nil, nil
	}
	if len(spec.SubmitterPodTemplate.Spec.Containers) == 0 {
		return nil, nil, errors.New("spec.submitterPodTemplate.spec.containers is empty; add the container that submits the job, or remove spec.submitterPodTemplate")
	}
	return spec.SubmitterPodTemplate, nil, nil
}

func (adapter) Templates(object framework.Object) []*corev1.PodTemplateSpec {
	job := framework.As[job](object)
	var templates []*corev1.PodTemplateSpec
	if job.Spec.RayClusterSpec != nil {
		templates = ray.Templates(job.Spec.RayClusterSpec)
	}
	if job.Spec.SubmitterPodTemplate != nil {
		templates = append(templates, job.Spec.SubmitterPodTemplate)
	}
	return templates
}

// setsShutdown reports whether the job keeps the shutdownAfterJobFinishes that its hold has set. It does not if its
// owner has set what to delete.
func (a adapter) setsShutdown(job *job) bool {
	return a.shutsDown && !job.Spec.deletes()
}

// Keeps returns why the operator does not delete the cluster of the ended job.
func (adapter) Keeps(object framework.Object) string {
	job := framework.As[job](object)
	switch {
	case job.policy() == rayv1.DeleteWorkers:
		return "policy DeleteWorkers keeps its head; delete the RayCluster if you no longer need it, and use policy DeleteCluster in the next RayJob"
	case job.Spec.ShutdownAfterJobFinishes || job.Spec.deletes():
		return ""
	}
	return "the RayJob does not set spec.shutdownAfterJobFinishes; delete the RayCluster if you no longer need it, and set the field in the next RayJob"
}

func (a adapter) SuspendPatch(object framework.Object, suspend bool) map[string]any {
	spec := map[string]any{"suspend": suspend}
	patch := map[string]any{"spec": spec}
	job := framework.As[job](object)
	note, noted := job.Annotations[wellknown.ShutdownAnnotation]
	switch {
	case suspend && !job.Spec.ShutdownAfterJobFinishes:
		spec["shutdownAfterJobFinishes"] = true
		patch["metadata"] = annotation("false")
	case !suspend && noted:
		if note == "false" && !a.setsShutdown(job) {
			spec["shutdownAfterJobFinishes"] = false
		}
		patch["metadata"] = annotation(nil)
	}
	return patch
}

// annotation returns the metadata of a patch that sets or removes the annotation.
func annotation(note any) map[string]any {
	return map[string]any{"annotations": map[string]any{wellknown.ShutdownAnnotation: note}}
}
