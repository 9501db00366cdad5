package jobextensions

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

const annotated = `{metadata: {annotations: {scheduling.x-k8s.io/suspend: "true"}}}`

// short makes the pods of the job end almost immediately.
const short = `{spec: {template: {metadata: {annotations: {localcluster.kube-queue.dev/run-time: 200ms}}}}}`

func TestAJobCostsFiveSixOrEightWrites(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		merged             []string
		waits, isSeenToRun bool
		writes             int
	}{
		"5 if it does not wait and ends soon": {merged: []string{`{spec: {suspend: true}}`, short}, writes: 5},
		"6 if it runs long":                   {merged: []string{annotated}, isSeenToRun: true, writes: 6},
		"8 if it waits too":                   {merged: []string{annotated}, waits: true, isSeenToRun: true, writes: 8},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, cluster, batchJob, test.merged...)
			unit := s.enqueued()
			if cpu := unit.Spec.Resource.Cpu(); cpu.Value() != 1 || unit.Spec.SubmissionTime == nil {
				t.Errorf("the unit requests %v cpu, submitted at %v", cpu, unit.Spec.SubmissionTime)
			}
			if test.waits {
				s.refuse("QuotaExceeded", "team has 0 of 1 cpu left")
				s.event(corev1.EventTypeNormal, "Queued", "QueueUnit "+unit.Name+" is waiting: QuotaExceeded: team has 0 of 1 cpu left")
			}
			s.admit()
			s.becomesSuspended(false)
			if test.isSeenToRun {
				s.inPhase(v1alpha1.PhaseRunning)
			}
			unit = s.inPhase(v1alpha1.PhaseSucceeded)
			finished := apimeta.FindStatusCondition(unit.Status.Conditions, wellknown.ConditionFinished)
			if finished == nil || finished.Reason != "CompletionsReached" || len(unit.Status.Conditions) != 1 {
				t.Errorf("conditions are %v", unit.Status.Conditions)
			}
			if released := s.get().GetAnnotations()["kube-queue/released"]; released != "1" {
				t.Errorf("it was released for attempt %q", released)
			}
			s.event(corev1.EventTypeNormal, "Released", unit.Name)
			s.cost(test.writes)
		})
	}
}

// The waits are those of docs/tasks/queue-a-job.md. The job ends so soon that its unit is never Running.
func TestKubectlWaitMissesNoStateOfAJob(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, annotated, short)
	wait := func(until string) error {
		out, err := s.cluster.Kubectl(s.Context(), "wait", "-n", s.ns, "queueunits.scheduling.x-k8s.io", "--field-selector=spec.consumerRef.name=a", "--for="+until, "--timeout=1m")
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", until, err, out)
		}
		return nil
	}
	s.must(wait("create"))
	states := []string{"jsonpath={.status.dequeueTime}", "jsonpath={.status.startTime}", "condition=Finished"}
	begun := make(chan error, len(states))
	for _, state := range states {
		go func() { begun <- wait(state) }()
	}
	s.admit()
	s.inPhase(v1alpha1.PhaseSucceeded)
	for range states {
		s.must(<-begun)
	}
	for _, state := range states { // long after the job has passed it
		s.must(wait(state))
	}
}
