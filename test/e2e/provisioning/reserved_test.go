package provisioning

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/standin/autoscaler"
)

// A job without GPUs passes at once. Then one job preempts another while both wait for nodes, the queue is drained,
// and a job is deleted without its dependents.
func TestJobsThatLoseTheirReservationLoseTheirRequests(t *testing.T) {
	s := prepare(t, "losing")
	suite.Both(t, enabled)
	s.TreeOf(`{name: losing, namespaces: [losing], max: {cpu: 10, memory: 1Gi, nvidia.com/gpu: 1}}`)
	s.PatchQueue("root-losing", `{"spec": {"preemption": {"withinQueue": "LowerPriority"}}}`)
	s.answer(autoscaler.Never())
	s.Apply(strings.ReplaceAll(short("small"), gpu, "{requests: {cpu: 100m}}"))
	s.WaitForPhase("Job", "small", v1alpha1.PhaseSucceeded)
	s.requested()

	s.Apply(short("low"))
	s.WaitForPhase("Job", "low", v1alpha1.PhaseReserved)
	s.requested("low")
	s.Apply(strings.ReplaceAll(short("high"), "annotations: {scheduling", `annotations: {scheduling.x-k8s.io/priority: "1000", scheduling`))
	s.WaitForPhase("Job", "high", v1alpha1.PhaseReserved)
	s.WaitForReason("Job", "low", wellknown.ReasonQuotaExceeded)
	s.requested("high")

	s.PatchQueue("root-losing", `{"spec": {"stop": "Drain"}}`)
	s.WaitForReason("Job", "high", wellknown.ReasonQueueStopped)
	s.ExpectFree()
	s.gone()
	s.PatchQueue("root-losing", `{"spec": {"stop": "None"}}`)
	s.WaitForPhase("Job", "high", v1alpha1.PhaseReserved)
	s.requested("high")

	orphan := metav1.DeletePropagationOrphan
	harness.Must(t, s.Kube.BatchV1().Jobs(s.Namespace).Delete(t.Context(), "high", metav1.DeleteOptions{PropagationPolicy: &orphan}))
	s.WaitForPhase("Job", "low", v1alpha1.PhaseReserved)
	s.requested("low")
	s.answer(autoscaler.Provision())
	s.WaitForPhase("Job", "low", v1alpha1.PhaseSucceeded)
	s.gone()
	s.ExpectFree()
}

// requested waits until exactly these jobs have a request, one each.
func (s *scene) requested(jobs ...string) {
	s.t.Helper()
	harness.Eventually(s.t, 30*time.Second, fmt.Sprintf("there are requests for %v", jobs), func() (bool, string) {
		var of []string
		for _, request := range s.requests() {
			of = append(of, strings.Split(request.GetName(), "-job-")[0])
		}
		return slices.Equal(of, jobs), fmt.Sprint(of)
	})
}

// short returns a job of one pod that needs a GPU for a second.
func short(name string) string {
	return `
apiVersion: batch/v1
kind: Job
metadata: {name: ` + name + `, annotations: {scheduling.x-k8s.io/suspend: "true"}}
spec:
  template:
    metadata: {annotations: {` + harness.RunTime + `: 1s}}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: train, resources: ` + gpu + `}]
---
`
}
