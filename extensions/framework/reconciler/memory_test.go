package reconciler

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestMemoryAwaitsWhatWasWritten(t *testing.T) {
	key := types.NamespacedName{Name: "a"}
	tests := []struct {
		name      string
		await     awaited
		job, unit string
		uid       types.UID
		later     time.Duration
		waits     bool
	}{
		{"nothing", awaited{}, "1", "1", "u", 0, false},
		{"an older job", awaited{job: version{value: "10"}}, "9", "", "", 0, true},
		{"the job as written", awaited{job: version{value: "10"}}, "10", "", "", 0, false},
		{"a newer job", awaited{job: version{value: "10"}}, "11", "", "", 0, false},
		{"the job that met a conflict", awaited{job: version{value: "10", pass: true}}, "10", "", "", 0, true},
		{"a unit not seen yet", awaited{unit: version{value: "10"}}, "1", "", "", 0, true},
		{"a unit not seen for long, so it is gone again", awaited{unit: version{value: "10"}}, "1", "", "", catchUp, false},
		{"a deleted unit that still shows", awaited{deleted: "u"}, "1", "1", "u", 0, true},
		{"another unit in its place", awaited{deleted: "u"}, "1", "1", "v", 0, false},
		{"versions that are no numbers", awaited{job: version{value: "a"}}, "b", "", "", 0, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := &memory{}
			m.await(key, noon, func(a *awaited) { *a = test.await })
			if wait := m.behind(key, test.job, test.unit, test.uid, noon.Add(test.later)); (wait > 0) != test.waits {
				t.Errorf("it waits %v", wait)
			}
		})
	}
}

// The event of a deletion can overtake the answer to an earlier write.
func TestMemoryForgetsGrowthThatWasDeletedMeanwhile(t *testing.T) {
	m := &memory{}
	m.awaitGrown("gone", version{value: "10"}, noon)
	m.awaitGrown("new", version{value: "11"}, noon.Add(time.Second))
	m.forgetGrown(noon.Add(catchUp))
	if left := m.grown.all(); len(left) != 1 || left["new"].value != "11" {
		t.Errorf("%v is awaited", left)
	}
}
