package kubeflow

import (
	"encoding/json"
	"testing"
	"time"

	training "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"

	"kube-queue.dev/kube-queue/test/require"
)

func base() Base[*training.TFJob] {
	return Base[*training.TFJob]{
		Named: TrainingKind("tfjob", training.TFJobKind, training.TFJobPlural),
		Empty: func() *training.TFJob { return &training.TFJob{} },
		Parts: func(job *training.TFJob) Parts {
			return TrainingParts(&job.Spec.RunPolicy, job.Spec.TFReplicaSpecs, &job.Status)
		},
	}
}

func TestQueuingPatch(t *testing.T) {
	is := func(name training.JobConditionType, status corev1.ConditionStatus) training.JobCondition {
		return training.JobCondition{Type: name, Status: status}
	}
	suspended, queuing := is(training.JobSuspended, "True"), is(Queuing, "True")
	tests := []struct {
		name string
		have []training.JobCondition
		on   bool
		want []training.JobCondition
	}{
		{"it is put last", []training.JobCondition{suspended}, true, []training.JobCondition{suspended, queuing}},
		{"it is put last again", []training.JobCondition{queuing, suspended}, true, []training.JobCondition{suspended, queuing}},
		{"it is set to false in its place", []training.JobCondition{suspended, queuing}, false, []training.JobCondition{suspended, is(Queuing, "False")}},
		{"what is not there is not taken back", []training.JobCondition{suspended}, false, []training.JobCondition{suspended}},
		{"one that was taken back comes again", []training.JobCondition{is(Queuing, "False"), suspended}, true, []training.JobCondition{suspended, queuing}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			job := &training.TFJob{Status: training.JobStatus{Conditions: test.have}}
			data, err := json.Marshal(base().QueuingPatch(job, test.on, "why", time.Now()))
			require.NoError(t, err)
			var got training.TFJob
			require.NoError(t, json.Unmarshal(data, &got))
			if len(got.Status.Conditions) != len(test.want) {
				t.Fatalf("the patch is %s", data)
			}
			for i, want := range test.want {
				if c := got.Status.Conditions[i]; c.Type != want.Type || c.Status != want.Status {
					t.Errorf("condition %d is %s=%s, not %s=%s", i, c.Type, c.Status, want.Type, want.Status)
				}
			}
		})
	}
}
