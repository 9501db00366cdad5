package main

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestRowShowsJobAndUnit(t *testing.T) {
	rayJob, rayCluster := job{named(t, "RayJob"), "tune"}, job{named(t, "RayCluster"), "notebook"}
	running := `{status: {jobDeploymentStatus: Running}}`
	for _, c := range []struct {
		name         string
		job          job
		object, unit string
		wasThere     bool
		want         row
		ended        bool
	}{
		{name: "nothing is there yet", job: rayJob, want: row{state: "-", phase: "-"}},
		{name: "a job has no state and no unit yet", job: rayJob, object: `{}`, want: row{state: "-", phase: "-"}},
		{name: "a unit without a status is enqueued", job: rayJob, object: running,
			unit: `{spec: {resource: {cpu: "2", memory: 1Gi}}}`, want: row{state: "Running", phase: "Enqueued", cpu: "2", memory: "1Gi"}},
		{name: "a unit reports why it waits", job: rayJob, object: running,
			unit: `{status: {phase: Backoff, reason: Why, message: because}}`, want: row{state: "Running", phase: "Backoff", reason: "Why", message: "because"}},
		{name: "a job has ended before its unit", job: rayJob, object: `{status: {jobDeploymentStatus: Complete, jobStatus: SUCCEEDED}}`,
			unit: `{status: {phase: Running}}`, want: row{state: "Complete", end: "Succeeded", phase: "Running"}},
		{name: "a unit has ended before its job", job: rayJob, object: running,
			unit: `{status: {phase: Succeeded}}`, want: row{state: "Running", phase: "Succeeded"}},
		{name: "both have ended", job: rayJob, object: `{status: {jobDeploymentStatus: Complete, jobStatus: SUCCEEDED}}`,
			unit: `{status: {phase: Succeeded}}`, want: row{state: "Complete", end: "Succeeded", phase: "Succeeded"}, ended: true},
		{name: "a job fails in a way of its own", job: rayJob, object: `{status: {jobDeploymentStatus: ValidationFailed}}`,
			unit: `{status: {phase: Failed}}`, want: row{state: "ValidationFailed", end: "Failed", phase: "Failed"}, ended: true},
		{name: "an endless job never ends by itself", job: rayCluster, object: `{status: {state: ready}}`,
			unit: `{status: {phase: Running}}`, want: row{state: "ready", phase: "Running"}},
		{name: "a deleted job has a unit still", job: rayCluster, wasThere: true,
			unit: `{status: {phase: Running}}`, want: row{state: deleted, phase: "Running"}},
		{name: "a deleted job is gone", job: rayCluster, wasThere: true, want: row{state: deleted, phase: "-"}, ended: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			read := func(text string) *unstructured.Unstructured {
				if text == "" {
					return nil
				}
				return object(t, text)
			}
			c.want.job = c.job
			got := rowOf(c.job, read(c.object), read(c.unit), c.wasThere)
			if got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			if got.ended() != c.ended {
				t.Errorf("ended: %v", got.ended())
			}
		})
	}
}
