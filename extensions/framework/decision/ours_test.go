package decision

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
)

func TestOursAndMarked(t *testing.T) {
	kind := framework.Kind{MarkedBySuspend: true, ManagedBy: "own/operator"}
	byAnnotation := framework.Kind{ManagedBy: "own/operator"}
	owner := []metav1.OwnerReference{{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: "t", UID: "owner", Controller: ptr.To(true)}}
	controlledBy := func(apiVersion, kind string) metav1.ObjectMeta {
		return metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "t", UID: "owner", Controller: ptr.To(true)}}}
	}
	helper := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Thing", Name: "t"}}
	tests := []struct {
		name           string
		kind           framework.Kind
		meta           metav1.ObjectMeta
		state          framework.JobState
		ours, isMarked bool
	}{
		{"a suspended job of a kind marked by it", kind, metav1.ObjectMeta{}, framework.JobState{Suspended: true}, true, true},
		{"the same without suspend", kind, metav1.ObjectMeta{}, framework.JobState{}, true, false},
		{"a suspended job of a kind marked by annotation", byAnnotation, metav1.ObjectMeta{}, framework.JobState{Suspended: true}, true, false},
		{"an annotation", byAnnotation, metav1.ObjectMeta{Annotations: map[string]string{wellknown.SuspendAnnotation: "true"}}, framework.JobState{}, true, true},
		{"an annotation that says no", kind, metav1.ObjectMeta{Annotations: map[string]string{wellknown.SuspendAnnotation: "false"}}, framework.JobState{Suspended: true}, true, false},
		{"a job of another queue", kind, metav1.ObjectMeta{Labels: map[string]string{wellknown.KueueLabel: ""}}, framework.JobState{Suspended: true}, false, true},
		{"a job of another operator", kind, metav1.ObjectMeta{}, framework.JobState{Suspended: true, ManagedBy: "another"}, false, true},
		{"a job that names its own operator", kind, metav1.ObjectMeta{}, framework.JobState{Suspended: true, ManagedBy: "own/operator"}, true, true},
		{"a part of a larger job", kind, metav1.ObjectMeta{OwnerReferences: owner}, framework.JobState{Suspended: true}, false, true},
		{"a job of any other controller", kind, controlledBy("keda.sh/v1alpha1", "ScaledJob"), framework.JobState{Suspended: true}, true, true},
		{"a job that a step of a queued job created", kind, controlledBy("v1", "Pod"), framework.JobState{Suspended: true}, true, true},
		{"a job of a queued kind that creates no jobs itself", kind, controlledBy("argoproj.io/v1alpha1", "Workflow"), framework.JobState{Suspended: true}, true, true},
		{"a job of another kind of the same name", kind, controlledBy("example.com/v1", "JobSet"), framework.JobState{Suspended: true}, true, true},
		{"a job of a schedule", kind, controlledBy("batch/v1", "CronJob"), framework.JobState{Suspended: true}, true, true},
		{"a job that a policy queues although somebody controls it", kind, metav1.ObjectMeta{OwnerReferences: owner,
			Annotations: map[string]string{wellknown.NotPartOfAnnotation: "owner"}}, framework.JobState{Suspended: true}, true, true},
		{"a part of such a job", kind, metav1.ObjectMeta{OwnerReferences: owner,
			Annotations: map[string]string{wellknown.NotPartOfAnnotation: "other"}}, framework.JobState{Suspended: true}, false, true},
		{"a job that bypasses the queue", kind, metav1.ObjectMeta{Annotations: map[string]string{wellknown.BypassAnnotation: "true"}}, framework.JobState{Suspended: true}, false, true},
		{"a job that somebody owns but does not control", kind, metav1.ObjectMeta{OwnerReferences: helper}, framework.JobState{Suspended: true}, true, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			object := &batchv1.Job{ObjectMeta: test.meta}
			if why := Foreign(test.kind, object, test.state, PartOf(schema.GroupKind{Group: "batch", Kind: "Job"}, object)); (why == "") != test.ours {
				t.Errorf("foreign: %q", why)
			}
			if got := Marked(test.kind, object, test.state); got != test.isMarked {
				t.Errorf("marked: %v", got)
			}
		})
	}
}

func TestAMarkThatItsOwnerAppliesOnTheServerIsNotWritten(t *testing.T) {
	mark := `{"f:metadata":{"f:annotations":{"f:scheduling.x-k8s.io/suspend":{}}}}`
	for name, test := range map[string]struct {
		operation metav1.ManagedFieldsOperationType
		fields    string
		applied   bool
	}{
		"the owner applies it":             {metav1.ManagedFieldsOperationApply, mark, true},
		"the owner created the job":        {metav1.ManagedFieldsOperationUpdate, mark, false},
		"the owner applies another field":  {metav1.ManagedFieldsOperationApply, `{"f:spec":{"f:parallelism":{}}}`, false},
		"the owner applies a similar mark": {metav1.ManagedFieldsOperationApply, `{"f:metadata":{"f:annotations":{"f:scheduling.x-k8s.io/suspended":{}}}}`, false},
	} {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate},
			{Manager: "helm", Operation: test.operation, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(test.fields)},
		}}}
		for range 2 { // as some informers do
			slim(job, func(framework.Object) []*corev1.PodTemplateSpec { return nil })
		}
		if got := WritesMark(framework.Kind{}, job); got == test.applied {
			t.Errorf("%s: the mark is written: %v", name, got)
		}
		for _, entry := range job.ManagedFields {
			if entry.FieldsV1 != nil || entry.Manager != "" {
				t.Errorf("%s: the cache has %v", name, entry)
			}
		}
	}
}
