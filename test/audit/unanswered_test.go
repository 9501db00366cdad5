package audit

import (
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/require"
)

// These are logs of failing API servers: writes without a response, and lines that are late or out of order.
func TestWhatAWriteWithoutAnAnswerChangedIsNotJudged(t *testing.T) {
	const (
		waiting = "tree; a:4 enqueue; "
		batch   = "tree; a:1b enqueue, dequeue; "
		dequeue = "controller status.phase=Dequeued status.reason=- status.quota=root/team status.attempts=1; "
		running = "a start, runs; a.unit status extensions phase=Running; wait 5s; a end"
		label   = "a.unit patch admin metadata.labels={a: b}; "
	)
	tellAll(t, Options{}, []story{
		{"a unit is dequeued all the same", waiting + "a.unit stored " + dequeue + "a release; " + running, ""},
		{"a unit is not dequeued, and then it is", waiting + "a.unit lost controller; a dequeue, release; " + running, ""},
		{"a unit is not dequeued, and the next write shows it", waiting + "a.unit lost controller; a.unit status controller message=waits; a release", "release-without-dequeue"},
		{"a unit is dequeued all the same when the one before has just ended", "tree; b:4 admit; a:4 enqueue; mark; b finish; a.unit stored " + dequeue + "requested 0s; a release; " + running + "; b endunit", ""},
		{"a write that was under way at the same time shows the unit as it was", waiting + label + "a.unit stored " + dequeue + "swap; a release; " + running, ""},
		{"two writes' lines come in the wrong order", waiting + label + "a.unit patch admin metadata.labels={a: c}; swap; a.unit stored " + dequeue + "a release; " + running, ""},
		{"the unit is gone, and the next of its name is not dequeued", waiting + "a.unit lost controller; a.unit remove admin; a enqueue, release", "release-without-dequeue"},
		{"a job is released all the same", batch + "a stored extensions spec.suspend=false; " + running, ""},
		{"and has a pod before its next write", batch + "a stored extensions spec.suspend=false; a start, runs; wait 5s; a end", ""},
		{"a job is not released, and the next write shows it", batch + "a lost extensions; a status system:kube-controller-manager active=0; seen; a start", "early-pod"},
		{"it costs more writes", batch + "a lost extensions; a release, start, event, event, event, runs; a.unit status extensions phase=Running; a end", ""},
		{"a job is evicted all the same", "tree; a:3 admit; a.unit stored controller status.conditions=[{type: Evicted, status: 'True', reason: Preempted}]; " +
			"a suspend extensions; a.0 removepod training-operator; a.unit conditions extensions Evicted=True/Stopped; a.unit status controller phase=Backoff", ""},
		{"the end of a unit has no answer, and no write follows", "tree; a:4 admit; a.0 status kwok phase=Succeeded; a conditions training-operator Succeeded=True; a.unit stored extensions status.phase=Succeeded; wait 60s; b:4 admit", ""},
		{"a unit is created though the answer is an error", waiting + "fails 500; wait 1s; a dequeue, release; " + running, ""},
		{"a unit is created again", waiting + "fails 500; wait 1s; a.unit again extensions; a dequeue, release; " + running, ""},
		{"a unit is deleted all the same", "tree; a:4 admit, evict; a.unit status controller phase=Dequeued attempts=2; a.unit remove extensions; fails 504; b:4 admit", ""},
		{"other units are judged", waiting + "a.unit lost controller; b:1 enqueue, release", "release-without-dequeue"},
		{"a create that is logged late shows that the one before failed", `tree; a:1 again admin; fails 500; a patch training-operator status.startTime=now+0s;
			swap; a again admin; a admit, end`, ""},
	})
}

func TestWritesWithoutAnAnswerAreCounted(t *testing.T) {
	s := newScript(t)
	s.tell("a:1 enqueue; a.unit lost controller; a lost extensions; a.unit conflict controller")
	report, err := s.log().Check(Options{})
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, report.Print(&out))
	if report.Log.Unanswered != 2 || !strings.Contains(out.String(), "2 writes of jobs and units have no response") {
		t.Errorf("%d writes have no response, want 2:\n%s", report.Log.Unanswered, &out)
	}
}
