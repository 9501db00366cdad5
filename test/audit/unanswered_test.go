package audit

import (
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/require"
)

// These are logs of API servers that failed: writes without an answer, lines that are late or in the wrong order.
func TestNextWriteShowsTheOutcomeOfAnUnansweredOne(t *testing.T) {
	const (
		waiting = "tree; a:4 enqueue; "
		batch   = "tree; a:1b enqueue, dequeue; "
		dequeue = "controller status.phase=Dequeued status.reason=- status.quota=root/team status.attempts=1; "
		running = "a start, runs; a.unit status extensions phase=Running; asks {status: {phase: Running}}; a end"
		label   = "a.unit patch admin metadata.labels={a: b}; "
	)
	tellAll(t, Options{}, []story{
		{"a unit is dequeued all the same", waiting + "a.unit stored " + dequeue + "a release; " + running, ""},
		{"a unit is not dequeued, and then it is", waiting + "a.unit lost " + dequeue + "a dequeue; asks {status: {phase: Dequeued, quota: root/team, attempts: 1}}; a release; " + running, ""},
		{"a unit is not dequeued, and its job is released", waiting + "a.unit lost " + dequeue + "a release; a.unit status controller message=waits", "release-without-dequeue"},
		// The version that the next write requires shows it.
		{"a unit is dequeued all the same, and the next write replaces all that shows it", waiting + "a.unit stored controller status.phase=Dequeued status.quota=root/team; a.unit status extensions phase=Running; " +
			"asks {metadata: {resourceVersion: BEFORE}, status: {phase: Running, quota: root/team}}; a release, runs, end", ""},
		{"a unit is not dequeued, and the next write replaces all that shows it", waiting + "a.unit lost controller status.phase=Dequeued status.quota=root/team; a.unit status controller phase=Enqueued quota=root/team; " +
			"asks {metadata: {resourceVersion: BEFORE}, status: {phase: Enqueued, quota: root/team}}; a release", "release-without-dequeue"},
		{"a unit is dequeued all the same where there is no room", "tree; b:2 admit; a:4 enqueue; a.unit stored " + dequeue + "a release; " + running, "over-limit"},
		{"a unit is dequeued all the same when the one before has just ended", "tree; b:4 admit; a:4 enqueue; mark; b finish; a.unit stored " + dequeue + "requested 0s; a release; " + running + "; b endunit", ""},
		{"a write that was under way at the same time shows the unit as it was", waiting + label + "a.unit stored " + dequeue + "swap; a release; " + running, ""},
		{"two writes' lines come in the wrong order", waiting + label + "a.unit patch admin metadata.labels={a: c}; swap; a.unit stored " + dequeue + "a release; " + running, ""},
		{"the unit is gone, and the next of its name is dequeued", waiting + "a.unit lost " + dequeue + "a.unit remove admin; a release, enqueue, dequeue", "release-without-dequeue"},
		{"a job is released all the same", batch + "a stored extensions spec.suspend=false; " + running, ""},
		{"a job is released all the same, twice", batch + "a stored extensions spec.suspend=false; a runs, suspend admin, release", "double-release"},
		{"the end of a unit has no answer, and no write follows", "tree; a:4 admit; a.0 status kwok phase=Succeeded; a.unit stored extensions status.phase=Succeeded; b:4 admit", ""},
		{"a unit is created though the answer is an error", waiting + "unanswered; wait 1s; a dequeue, release; " + running, ""},
		{"a unit is created again", waiting + "unanswered; wait 1s; a.unit again extensions; a dequeue, release; " + running, ""},
		{"a create that is logged late shows that the one before failed", `tree; a:1 again admin; first-unanswered; a patch training-operator status.startTime=now+0s;
			swap; a admit, end`, ""},
		// A unit may be deleted while its delete has no answer.
		{"the delete of a unit has no answer", "tree; a:4 admit, evict; a.unit status controller phase=Dequeued attempts=2; a.unit remove extensions; fails 504; b:4 admit", ""},
	})
}

func TestWritesWhoseOutcomeNoLaterOneShowsAreCounted(t *testing.T) {
	for text, want := range map[string]int{
		"a.unit stored controller status.reason=A status.message=a; a.unit status controller reason=B message=b; asks {status: {reason: B, message: b}}": 1,
		"a.unit stored controller status.reason=A status.message=a; a.unit status controller reason=B; asks {status: {reason: B}}":                       0,
		"a.unit stored controller status.reason=A; a.unit status controller reason=B; asks {metadata: {resourceVersion: BEFORE}, status: {reason: B}}":   0,
		"a.unit lost controller status.phase=Dequeued; a.unit remove admin; a enqueue":                                                                   1,
		"a.unit stored controller status.phase=Dequeued":                                                                                                 1,
	} {
		s := newScript(t)
		s.tell("a:1 enqueue; " + text)
		report, err := s.log().Check(Options{})
		require.NoError(t, err)
		var out strings.Builder
		require.NoError(t, report.Print(&out))
		if report.world.doubts != want {
			t.Errorf("%s: %d units are in doubt for a time, want %d", text, report.world.doubts, want)
		}
		if report.Log.Unanswered != want || strings.Contains(out.String(), "1 writes have no response") != (want == 1) {
			t.Errorf("%s: %d writes are counted as unknown, want %d:\n%s", text, report.Log.Unanswered, want, out.String())
		}
	}
}
