package provisioning

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/faultproxy"
	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/standin/autoscaler"
	"kube-queue.dev/kube-queue/test/testmode"
)

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

// killings are the programs with the writes at which they are killed. Each text is a part of the name of
// a write that the story must have.
var killings = []struct {
	victim string
	at     func(faultproxy.Request) bool
	writes []string
}{
	{harness.Extensions, func(r faultproxy.Request) bool { return r.Resource != "events" }, []string{
		"POST queueunits", "POST podtemplates", "POST provisioningrequests", "DELETE podtemplates", "DELETE provisioningrequests",
		`"state":"Pending"`, `"state":"Ready"`, `"state":"Retry"`, `"path":"/spec/suspend","value":false`, `"phase":"Succeeded"`,
	}},
	{harness.Controller, func(r faultproxy.Request) bool { return r.Resource == "queueunits" }, []string{`"phase":"Reserved"`, `"phase":"Backoff"`, `"phase":"Dequeued"`}},
}

// Each write of a program is lost once, and its response once. Three jobs need nodes at the same time: the
// first request of one fails, the first request of another is deleted by hand, and the third job is
// deleted while it waits.
func TestProgramsKilledAtEachWriteOfRequests(t *testing.T) {
	testmode.OnlyInTestAll(t, "TestAProgramThatIsKilledAfterAnyWriteLeavesTheSameObjects kills job-extensions, and make test kills the controller at the writes of checks")
	for _, k := range killings {
		t.Run(k.victim, func(t *testing.T) {
			s := prepare(t, "killed")
			s.Allowed = []string{"write-budget"} // a write without a response is repeated
			s.script()
			executioner := suite.ExecuteOneOf(t, k.victim, "job", harness.AroundEach, k.at)
			history := s.record()
			s.quota()
			s.Apply(short("failing") + short("deleted") + short("gone"))
			deleted, gone := false, false
			executioner.Revive(t, func() bool {
				deleted = deleted || s.deletesTheRequestOf("deleted")
				gone = gone || s.deletesTheWaiting("gone")
				if !deleted || !gone || !s.Ended("Job", "failing") || !s.Ended("Job", "deleted") || s.Unit("Job", "gone") != nil {
					return false
				}
				free, _ := s.Free()
				nothing, _ := s.nothingIsLeft()
				return free && nothing
			})
			t.Logf("%s was killed %d times", k.victim, executioner.Kills)
			tried := strings.Join(executioner.Tried(), "\n")
			for _, write := range k.writes {
				if !strings.Contains(tried, write) {
					t.Errorf("no write with %s was killed, only\n%s", write, tried)
				}
			}
			for _, name := range []string{"failing", "deleted"} {
				if unit := s.WaitForPhase("Job", name, v1alpha1.PhaseSucceeded); unit.Status.Attempts != 1 || unit.Status.Reservations != 2 {
					t.Errorf("%s was reserved %d times and released %d times", name, unit.Status.Reservations, unit.Status.Attempts)
				}
			}
			s.ExpectFree()
			history.oneForEachReservation(t, 5)
		})
	}
}

// script sets the answers to the requests of the three jobs.
func (s *scene) script() {
	s.t.Helper()
	for _, line := range []struct {
		name   string
		answer autoscaler.Answer
	}{
		{"", autoscaler.Provision()},
		{"failing-*-nodes-1", autoscaler.Fail("NoStock", "there are no GPUs left")},
		{"deleted-*-nodes-1", autoscaler.Never()},
		{"gone-*", autoscaler.NotProvisioned("the nodes are being added")},
	} {
		harness.Must(s.t, s.scaler.Answer(autoscaler.Rule{Namespace: s.Namespace, Name: line.name}, line.answer))
	}
}

// deletesTheRequestOf deletes the request of a job by hand, as soon as it is recorded in the unit.
func (s *scene) deletesTheRequestOf(name string) bool {
	s.t.Helper()
	unit := s.Unit("Job", name)
	if unit == nil || len(unit.Status.AdmissionChecks) == 0 || len(unit.Status.AdmissionChecks[0].PodSetUpdates) == 0 {
		return false
	}
	harness.Must(s.t, s.Dynamic.Resource(autoscaler.Resource).Namespace(s.Namespace).Delete(s.t.Context(), unit.Name+"-nodes-1", metav1.DeleteOptions{}))
	return true
}

// deletesTheWaiting deletes a job as soon as its unit shows that its nodes are being added.
func (s *scene) deletesTheWaiting(name string) bool {
	s.t.Helper()
	unit := s.Unit("Job", name)
	if unit == nil || !strings.Contains(unit.Status.Message, "the nodes are being added") {
		return false
	}
	background := metav1.DeletePropagationBackground
	harness.Must(s.t, s.Kube.BatchV1().Jobs(s.Namespace).Delete(s.t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &background}))
	return true
}
