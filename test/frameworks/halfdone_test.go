package frameworks

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/harness"
)

// halfDone is a JobSet that is evicted after most of its Jobs have succeeded.
var halfDone = specimen{
	kind: "JobSet", resource: schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"},
	extension: "jobset", name: "half-done", total: `{cpu: 1}`, test: (*story).taleOfHalfDone,
}

var tenJobs = fmt.Sprintf(`apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: shards, annotations: {scheduling.x-k8s.io/suspend: "true"}}
spec: {replicatedJobs: [{name: w, replicas: 10, template: {spec: {backoffLimit: 0, template: {metadata: {annotations: {%s}},
  spec: {restartPolicy: Never, containers: [{name: main, image: busybox, resources: {requests: {cpu: 100m}}}]}}}}}]}
`, harness.PodAnnotations(harness.UntilFinished, false))

// taleOfHalfDone: nine of ten Jobs have succeeded. After the eviction, the JobSet requests one pod and runs beside a Job
// that takes the rest of the quota.
func (s *story) taleOfHalfDone() {
	s.Apply(tenJobs)
	queue := s.WaitForPhase(s.kind, "shards", v1alpha1.PhaseRunning).Status.Queue
	harness.Eventually(s.t, patience, "it has ten pods", func() (bool, string) {
		n := len(s.Pods("shards"))
		return n == 10, fmt.Sprint(n)
	})
	for _, pod := range s.Pods("shards")[:9] {
		s.Patch(harness.Pods, pod.Name, harness.EndNow)
	}
	harness.Eventually(s.t, patience, "nine Jobs have succeeded", func() (bool, string) {
		status, _, _ := unstructured.NestedSlice(s.Object(s.resource, "shards").Object, "status", "replicatedJobsStatus")
		return strings.Contains(fmt.Sprint(status), "succeeded:9"), fmt.Sprint(status)
	})
	s.PatchQueue(queue, `{"spec":{"stop":"Drain"}}`)
	s.WaitForReason(s.kind, "shards", wellknown.ReasonQueueStopped)
	harness.Eventually(s.t, patience, "it requests one pod", func() (bool, string) {
		request := s.Unit(s.kind, "shards").Spec.Resource.Cpu().String()
		return request == "100m", request
	})
	s.Apply(harness.Job{Name: "blocker", CPU: "900m", Runs: harness.UntilFinished, Annotations: `scheduling.x-k8s.io/priority: "10"`}.String())
	s.WaitForUnit("Job", "blocker")
	s.PatchQueue(queue, `{"spec":{"stop":"None"}}`)
	s.WaitForPhase("Job", "blocker", v1alpha1.PhaseRunning)
	s.WaitForPhase(s.kind, "shards", v1alpha1.PhaseDequeued, v1alpha1.PhaseRunning)
	s.waitForUsed("1")
	s.delete("shards", background)
	s.Delete(harness.Jobs, "blocker")
	s.expectFree()
}
