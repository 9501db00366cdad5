//go:build versions

package main

import (
	"fmt"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/localcluster/internal/cluster"
)

// The oldest version starts and is upgraded to each later one. Objects stay, and Jobs run.
func TestClusterOfEachVersionRunsJobs(t *testing.T) {
	data := t.TempDir()
	versions := cluster.KubernetesVersions()
	t.Cleanup(func() { localcluster(t, "down", "--data", data) })
	succeed(t, "up", "--data", data, "--nodes=1", "--pod-run-time=1s", "--kubernetes="+versions[0], "--operators=training-operator")
	for i, version := range versions {
		if i > 0 {
			succeed(t, "upgrade", "--data", data, "--kubernetes="+version)
		}
		s := status(t, data)
		ready := s.Ready
		if ready.Kubernetes != version || !s.AllReady() {
			t.Errorf("the cluster has version %s, want %s: %+v", ready.Kubernetes, version, s)
		}
		out := kubectl(t, ready, "", "version")
		if strings.Count(out, "v"+version+".") != 2 {
			t.Errorf("kubectl version: %s", out)
		}
		job := "job-" + strings.ReplaceAll(version, ".", "-")
		kubectl(t, ready, "", "create", "job", job, "--image=none")
		kubectl(t, ready, "", "wait", "--for=condition=complete", "job/"+job, "--timeout="+patience.String())
		kubectl(t, ready, trainingJob(job), "create", "-f", "-")
		// The operator takes longer to reconnect after each of several upgrades.
		kubectl(t, ready, "", "wait", "--for=condition=Succeeded", "tfjob/"+job, "--timeout="+(5*patience).String())
		if found := strings.Fields(kubectl(t, ready, "", "get", "jobs", "-o", "name")); len(found) != i+1 {
			t.Errorf("with version %s the Jobs are %v, want %d", version, found, i+1)
		}
	}
}

func trainingJob(name string) string {
	return fmt.Sprintf(`apiVersion: kubeflow.org/v1
kind: TFJob
metadata:
  name: %s
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 1
      restartPolicy: Never
      template:
        spec:
          containers:
          - name: tensorflow
            image: none
`, name)
}
