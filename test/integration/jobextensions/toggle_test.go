package jobextensions

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A tenant unsuspends a queued job in a loop. Each time it is suspended again, which cannot wait. Its
// unit is not written at all, and its events are written ever more rarely.
func TestAQueuedJobThatIsUnsuspendedAgainAndAgainCostsFewEvents(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		kind   kind
		merged string
		patch  string
	}{
		"a Job marked by suspend": {batchJob, `{spec: {suspend: true}}`, `{spec: {suspend: false}}`},
		"a TFJob, its annotation taken off too": {tfJob, annotated,
			`{metadata: {annotations: {scheduling.x-k8s.io/suspend: "false"}}, spec: {runPolicy: {suspend: false}}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, cluster, test.kind, test.merged)
			s.enqueued()
			before := s.writes()
			const times = 12
			for range times {
				s.change(test.patch)
				s.becomesSuspended(true)
			}
			s.eventually("one event counts all", func() string {
				var found []corev1.Event
				for _, e := range s.events() {
					if e.Reason == "HeldAgain" {
						found = append(found, e)
					}
				}
				if len(found) == 1 && found[0].Count == times {
					return ""
				}
				return fmt.Sprintf("%d events: %+v", len(found), found)
			})
			after := s.writes()
			// Three at once, one that counts the others, and up to three more on a slow machine: after 10, 20
			// and 40 s.
			if events := after.OnEvents - before.OnEvents; events > 7 {
				t.Errorf("%d times cost %d writes of events", times, events)
			}
			if after.OnUnit != before.OnUnit {
				t.Errorf("the unit was written %d times", after.OnUnit-before.OnUnit)
			}
		})
	}
}
