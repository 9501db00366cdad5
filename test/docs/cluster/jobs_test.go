package cluster

import (
	"fmt"
	"testing"

	"kube-queue.dev/kube-queue/test/harness"
)

// job is the manifest of a marked batch Job.
func job(name, cpu, annotations string) string {
	return fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata:
  name: %s
  annotations: {scheduling.x-k8s.io/suspend: "true"%s}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: main, image: busybox, resources: {requests: {cpu: %q}}}
---
`, name, annotations, cpu)
}

// apply applies jobs one after the other, in this order.
func apply(t *testing.T, env *harness.Env, jobs ...string) {
	t.Helper()
	for _, job := range jobs {
		env.Apply(job)
	}
}

// occupy uses up the quota of the namespace with two other jobs.
func occupy(t *testing.T, env *harness.Env) {
	t.Helper()
	apply(t, env, job("train-a", "100m", ""), job("train-b", "100m", ""))
	for _, name := range []string{"train-a", "train-b"} {
		env.WaitForPhase("Job", name, "Dequeued", "Running")
	}
}

// finish ends a job and deletes it.
func finish(env *harness.Env, name string) {
	env.Finish(harness.Jobs, name)
	env.WaitForPhase("Job", name, "Succeeded")
	env.Delete(harness.Jobs, name)
}
