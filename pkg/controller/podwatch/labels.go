package podwatch

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
)

// Labels by which operators name the job of a pod, or of an object between a job and its pods. The
// values of the first two are UIDs, those of the others names.
const (
	jobSetLabel     = "jobset.sigs.k8s.io/jobset-uid"
	jobLabel        = "batch.kubernetes.io/controller-uid"
	rayJobLabel     = "ray.io/originated-from-cr-name"
	rayClusterLabel = "ray.io/cluster"
	trainingLabel   = "training.kubeflow.org/job-name"
	sparkLabel      = "sparkoperator.k8s.io/app-name"
	workflowLabel   = "workflows.argoproj.io/workflow"
)

// byUID and byName are in the order in which the labels of an object are read: the pod of a Job of a
// JobSet also has the label of the Job, which is deleted together with the JobSet.
var (
	byUID  = []string{jobSetLabel, jobLabel}
	byName = []string{rayClusterLabel, rayJobLabel, trainingLabel, sparkLabel, workflowLabel}
)

// kindLabels are the labels by name of the kinds of jobs.
var kindLabels = map[string]string{
	"TFJob": trainingLabel, "PyTorchJob": trainingLabel, "MPIJob": trainingLabel,
	"XGBoostJob": trainingLabel, "PaddleJob": trainingLabel, "JAXJob": trainingLabel,
	"RayJob": rayJobLabel, "RayCluster": rayClusterLabel, "SparkApplication": sparkLabel, "Workflow": workflowLabel,
}

// LabelOf returns what identifies the job of a unit for pods that have lost their controller; empty if
// its UID does, or nothing.
func LabelOf(job schedulingv1alpha1.ConsumerReference) string {
	return labelled(kindLabels[job.Kind], job.Name)
}

// labelled returns the identifier of the object that the label names. It is no UID.
func labelled(label, name string) string {
	if label == "" || name == "" {
		return ""
	}
	return label + "=" + name
}

// ownerOf returns what identifies the object that the object belongs to: its controller, else its first
// owner, else what its labels name; empty if nothing does. orphan reports that its labels do.
func ownerOf(o metav1.Object) (id string, orphan bool) {
	if owners := o.GetOwnerReferences(); len(owners) > 0 {
		if controller := metav1.GetControllerOfNoCopy(o); controller != nil {
			return string(controller.UID), false
		}
		return string(owners[0].UID), false
	}
	labels := o.GetLabels()
	for _, label := range byUID {
		if uid := labels[label]; uid != "" {
			return uid, true
		}
	}
	for _, label := range byName {
		if id := labelled(label, labels[label]); id != "" {
			return id, true
		}
	}
	return "", false
}
