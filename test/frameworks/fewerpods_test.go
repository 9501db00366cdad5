package frameworks

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/harness"
)

// fewerPods is an elastic PyTorchJob that starts with fewer workers than it requests.
var fewerPods = specimen{
	kind: "PyTorchJob", resource: harness.PyTorchJobs, extension: "pytorchjob", name: "fewer-pods",
	total: `{cpu: 3}`,
	test:  (*story).taleOfFewerPods,
}

const elasticJob = `apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: elastic
  annotations: {scheduling.x-k8s.io/suspend: "true"}
spec:
  elasticPolicy: {minReplicas: 2, maxReplicas: 5, rdzvBackend: c10d}
  pytorchReplicaSpecs:
    Worker:
      replicas: 5
      restartPolicy: OnFailure
      template:
        metadata: {annotations: {localcluster.kube-queue.dev/run-time: 1h}}
        spec: {containers: [{name: pytorch, image: busybox, resources: {requests: {cpu: "1"}}}]}
`

// taleOfFewerPods: a job of five workers runs with three of them, is stopped, and waits for all of them again.
func (s *story) taleOfFewerPods() {
	s.Apply(elasticJob)
	s.expectWorkers(s.WaitForPhase(s.kind, "elastic", v1alpha1.PhaseRunning), 3)
	harness.Eventually(s.t, time.Minute, "the job has 3 pods", func() (bool, string) {
		pods := s.Pods("elastic")
		return len(pods) == 3, fmt.Sprint(len(pods))
	})
	for _, pod := range s.Pods("elastic") {
		for _, env := range pod.Spec.Containers[0].Env {
			if env.Name == "PET_NNODES" && env.Value != "2:5" {
				s.t.Errorf("PET_NNODES of %s is %s", pod.Name, env.Value)
			}
		}
	}
	queue := s.Unit(s.kind, "elastic").Status.Queue
	s.PatchQueue(queue, `{"spec":{"stop":"Drain"}}`)
	s.expectWorkers(s.WaitForPhase(s.kind, "elastic", v1alpha1.PhaseEnqueued), 5)
	s.expectNoneRuns("elastic")
	s.PatchQueue(queue, `{"spec":{"stop":"None"}}`)
	s.expectWorkers(s.WaitForPhase(s.kind, "elastic", v1alpha1.PhaseRunning), 3)
	s.request("elastic", background)
	s.expectFree()
}

// expectWorkers expects that the job has so many workers in its spec, and that its unit shows them if they are not
// all.
func (s *story) expectWorkers(unit *v1alpha1.QueueUnit, workers int64) {
	s.t.Helper()
	object := s.Object(s.resource, "elastic")
	if got, _, _ := unstructured.NestedInt64(object.Object, "spec", "pytorchReplicaSpecs", "Worker", "replicas"); got != workers {
		s.t.Errorf("the job has %d workers, want %d", got, workers)
	}
	var admitted []v1alpha1.AdmittedPodSet
	if workers < 5 {
		admitted = []v1alpha1.AdmittedPodSet{{Name: "worker", Count: int32(workers)}}
	}
	if !slices.Equal(unit.Status.AdmittedPodSets, admitted) {
		s.t.Errorf("the unit was admitted with %+v, want %+v", unit.Status.AdmittedPodSets, admitted)
	}
	if set := unit.Spec.PodSets[0]; set.Count != 5 {
		s.t.Errorf("the unit requests %+v", set)
	}
}
