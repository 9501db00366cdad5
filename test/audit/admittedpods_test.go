package audit

import "testing"

// The unit of a batch Job of four pods is admitted with two of them.
func TestAJobIsReleasedWithNoMorePodsThanWereAdmitted(t *testing.T) {
	released := func(limit string, pods float64) func(*script) {
		return func(s *script) {
			s.create(admin, trees, treeOf(`max: {cpu: "9"}`, `{name: team, namespaces: [default], max: {cpu: "`+limit+`"}}`))
			p := s.batchJob("a", 4)
			p.job.patch(admin, "spec.parallelism", 4.0, "spec.completions", 4.0)
			p.enqueue()
			p.unit.patch(extensions, "spec.podSets", []any{map[string]any{"name": "main", "count": 4.0, "minCount": 2.0, "requests": map[string]any{"cpu": "1"}}})
			p.unit.patchStatus(controller, "status.phase", "Dequeued", "status.quota", s.group, "status.attempts", 1.0,
				"status.admittedPodSets", []any{map[string]any{"name": "main", "count": 2.0}})
			p.job.patch(extensions, "spec.parallelism", pods, "spec.suspend", false)
		}
	}
	runStories(t, []story{
		{name: "with those", act: released("2", 2)},
		{name: "with fewer", act: released("2", 1)},
		{name: "with more", act: released("2", 4), breaks: []string{"more-pods"}},
		{name: "those do not fit", act: released("1", 2), breaks: []string{"over-limit"}},
	})
}
