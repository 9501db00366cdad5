package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/localcluster/internal/cluster"
)

// mpiAndJobSetYAML contains one suspended job of each kind that succeeds and one that fails, with
// only the required fields.
const mpiAndJobSetYAML = `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: mpi}
spec:
  runPolicy: {suspend: true}
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: mpi, image: none}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: mpi, image: none}]}}}
---
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: mpi-fails}
spec:
  runPolicy: {suspend: true, backoffLimit: 0, cleanPodPolicy: Running}
  mpiReplicaSpecs:
    Launcher:
      template:
        metadata: {annotations: {localcluster.kube-queue.dev/exit-code: "1"}}
        spec: {containers: [{name: mpi, image: none}]}
    Worker: {replicas: 1, template: {spec: {containers: [{name: mpi, image: none}]}}}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: set}
spec:
  suspend: true
  replicatedJobs:
  - name: driver
    template: {spec: {template: {spec: {containers: [{name: main, image: none}]}}}}
  - name: workers
    replicas: 2
    template: {spec: {parallelism: 2, completions: 2, template: {spec: {containers: [{name: main, image: none}]}}}}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: set-fails}
spec:
  suspend: true
  replicatedJobs:
  - name: main
    template:
      spec:
        backoffLimit: 0
        template:
          metadata: {annotations: {localcluster.kube-queue.dev/exit-code: "1"}}
          spec: {containers: [{name: main, image: none}]}
`

// TestMPIJobsAndJobSetsRunBesideTrainingJobs starts all three operators, while the default port of
// mpi-operator is in use.
func TestMPIJobsAndJobSetsRunBesideTrainingJobs(t *testing.T) {
	onlyInTestAll(t, "test/frameworks runs MPIJobs, JobSets and training jobs from submission to end")
	if taken, err := net.Listen("tcp", ":8080"); err == nil {
		defer taken.Close()
	}
	// The Makefile uses such folder names.
	data := filepath.Join(t.TempDir(), "mpi-operator,jobset")
	running := startRun(t, command("run", "--data", data, "--nodes=2", "--pod-run-time=1s", "--operators=mpi-operator,training-operator,jobset"))
	ready := running.ready(t)
	parts := status(t, data).Parts

	if versions := kubectl(t, ready, "", "get", "crd", "mpijobs.kubeflow.org", "-o", "jsonpath={.spec.versions[*].name}"); versions != "v2beta1" {
		t.Errorf("MPIJob is served as %s", versions)
	}
	kubectl(t, ready, mpiAndJobSetYAML, "create", "-f", "-")
	jobs := []struct{ resource, suspend, end string }{
		{"mpijob/mpi", `{"spec":{"runPolicy":{"suspend":false}}}`, "Succeeded"},
		{"mpijob/mpi-fails", `{"spec":{"runPolicy":{"suspend":false}}}`, "Failed"},
		{"jobset/set", `{"spec":{"suspend":false}}`, "Completed"},
		{"jobset/set-fails", `{"spec":{"suspend":false}}`, "Failed"},
	}
	for _, job := range jobs {
		waitForCondition(t, ready, job.resource, "Suspended")
	}
	if pods := kubectl(t, ready, "", "get", "pods", "-o", "name"); pods != "" {
		t.Errorf("suspended jobs have pods: %s", pods)
	}
	for _, job := range jobs {
		kubectl(t, ready, "", "patch", job.resource, "--type=merge", "-p", job.suspend)
	}
	for _, job := range jobs {
		waitForCondition(t, ready, job.resource, job.end)
	}
	podsOf(t, ready, "training.kubeflow.org/job-name=mpi", "Running Running Succeeded")
	podsOf(t, ready, "training.kubeflow.org/job-name=mpi-fails", "Failed")
	podsOf(t, ready, "jobset.sigs.k8s.io/jobset-name=set", strings.Join(slices.Repeat([]string{"Succeeded"}, 5), " "))

	wrong := strings.Replace(jobSetYAML, "spec:", "spec:\n  successPolicy: {operator: All, targetReplicatedJobs: [other]}", 1)
	if _, err := tryKubectl(ready, wrong, "create", "-f", "-"); err == nil || !strings.Contains(err.Error(), "'other' does not appear") {
		t.Errorf("an invalid JobSet: %v", err)
	}
	wroteTheirOwn(t, ready)

	running.stdin.Close()
	if r := running.wait(t); r.code != 0 {
		t.Errorf("got %+v", r)
	}
	nothingLeft(t, data, parts...)
}

const jobSetYAML = `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: wrong}
spec:
  replicatedJobs:
  - name: main
    template: {spec: {template: {spec: {containers: [{name: main, image: none}]}}}}
`

// waitForCondition waits until the condition is true.
func waitForCondition(t *testing.T, ready *cluster.Ready, resource, condition string) {
	t.Helper()
	eventually(t, resource, func() error {
		got, err := tryKubectl(ready, "", "get", resource, "-o", `jsonpath={.status.conditions[?(@.status=="True")].type}`)
		if err == nil && !slices.Contains(strings.Fields(got), condition) {
			err = fmt.Errorf("it is %q, want %s", got, condition)
		}
		return err
	})
}

// podsOf waits until the pods are in these phases, in alphabetical order.
func podsOf(t *testing.T, ready *cluster.Ready, selector, phases string) {
	t.Helper()
	eventually(t, "pods with "+selector, func() error {
		out, err := tryKubectl(ready, "", "get", "pods", "-l", selector, "-o", "jsonpath={.items[*].status.phase}")
		found := strings.Fields(out)
		slices.Sort(found)
		if got := strings.Join(found, " "); err == nil && got != phases {
			err = errors.New(got)
		}
		return err
	})
}

func wroteTheirOwn(t *testing.T, ready *cluster.Ready) {
	t.Helper()
	audit, err := os.ReadFile(ready.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"mpi-operator", "jobset", "training-operator"} {
		if !strings.Contains(string(audit), `"user":{"username":"`+user+`"`) {
			t.Errorf("nothing was written by %s", user)
		}
	}
}
