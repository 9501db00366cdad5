package job

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"kube-queue.dev/kube-queue/extensions/framework/adaptertest"
)

func TestJobs(t *testing.T) { adaptertest.Run(t, New()) }

func TestDamagedJobs(t *testing.T) { adaptertest.Fuzz(t, New()) }

func TestTheEndOfAJobKeepsItsReason(t *testing.T) {
	for of, succeeded := range map[batchv1.JobConditionType]bool{batchv1.JobComplete: true, batchv1.JobFailed: false} {
		status := &batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: of, Status: corev1.ConditionTrue, Reason: "r", Message: "m"}}}
		if got := end(status); got == nil || got.Succeeded != succeeded || got.Reason != "r" || got.Message != "m" {
			t.Errorf("%s is the end %+v", of, got)
		}
	}
}
