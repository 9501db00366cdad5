package e2e

import (
	"fmt"
	"testing"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/harness"
)

// gpuJob requests GPUs on nodes of one model. No node of this cluster has them, so its pod
// waits for one.
func gpuJob(name, model string, count int) string {
	return fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {name: %s}, spec: {suspend: true, template: {spec: {
		restartPolicy: Never, nodeSelector: {model: %s},
		containers: [{name: main, image: main, resources: {limits: {example.com/gpu: %d}}}]}}}}`+"\n---\n", name, model, count)
}

func TestTypesOfGPUsAreGivenOutApart(t *testing.T) {
	l := suite.Env(t, "gpus")
	controller := suite.Program(t, harness.Controller)
	extensions := suite.Program(t, harness.Extensions, "--enabled-extensions="+enabled,
		"--device-types=example.com/gpu:model=h100:gpu/h100,example.com/gpu:model=a100:gpu/a100")
	controller.Start()
	extensions.Start()
	l.Tree(`{example.com/gpu: "10", gpu/h100: "2", gpu/a100: "4"}`)

	l.Apply(gpuJob("first", "h100", 2))
	l.WaitForPhase("Job", "first", "Dequeued")
	l.Apply(gpuJob("second", "h100", 1) + gpuJob("third", "a100", 4))
	l.WaitForPhase("Job", "third", "Dequeued")
	waits := l.WaitForReason("Job", "second", wellknown.ReasonQuotaExceeded)
	if want := "insufficient gpu/h100 in quota root/team: requested 1, used 2 of max 2"; waits.Status.Message != want {
		t.Errorf("the message is %q, want %q", waits.Status.Message, want)
	}
	l.Delete(harness.Jobs, "first")
	l.WaitForPhase("Job", "second", "Dequeued")
	for _, name := range []string{"second", "third"} {
		l.Delete(harness.Jobs, name)
	}
	l.ExpectFree()
}
