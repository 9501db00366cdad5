package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/localcluster/internal/cluster"
	"kube-queue.dev/kube-queue/test/testmode"
)

// TestOperatorsRunSideBySide runs all operators, while the default ports of two of them are in use, in a
// folder whose name contains special characters. test/frameworks runs a job of each kind from submission to
// end; the parts show what its jobs do not have. They run in parallel, because they mostly wait.
func TestOperatorsRunSideBySide(t *testing.T) {
	testmode.OnlyInTestAll(t, "test/frameworks runs a job of each kind from submission to end")
	for _, port := range []string{":6060", ":8080"} {
		if taken, err := net.Listen("tcp", port); err == nil {
			defer taken.Close()
		}
	}
	data := filepath.Join(t.TempDir(), "all operators, side by side")
	running := startRun(t, command("run", "--data", data, "--nodes=2", "--node-cpu=32", "--pod-run-time=2s",
		"--operators="+strings.Join(cluster.OperatorNames(), ",")))
	ready := running.ready(t)
	parts := status(t, data).Parts
	t.Run("parts", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *cluster.Ready){
			"mpi-operator serves MPIJob":                mpiJobs,
			"the webhooks of JobSet and Trainer refuse": webhooksRefuse,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, ready)
			})
		}
	})
	audit, err := os.ReadFile(ready.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range cluster.OperatorNames() {
		if !strings.Contains(string(audit), `"user":{"username":"`+user+`"`) {
			t.Errorf("nothing was written by %s", user)
		}
	}
	running.stdin.Close()
	if r := running.wait(t); r.code != 0 {
		t.Errorf("got %+v", r)
	}
	nothingLeft(t, data, parts...)
}

// waitForField waits until kubectl prints this for an object.
func waitForField(t *testing.T, ready *cluster.Ready, resource, jsonpath, want string) {
	t.Helper()
	eventually(t, resource, func() error {
		got, err := tryKubectl(ready, "", "get", resource, "-o", "jsonpath="+jsonpath)
		if err == nil && got != want {
			err = fmt.Errorf("it is %q, want %q", got, want)
		}
		return err
	})
}

// refused creates an object that must be refused.
func refused(t *testing.T, ready *cluster.Ready, yaml, want string) {
	t.Helper()
	if _, err := tryKubectl(ready, yaml, "create", "-f", "-"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// mpiJobs: training-operator runs without MPIJob.
func mpiJobs(t *testing.T, ready *cluster.Ready) {
	waitForField(t, ready, "crd/mpijobs.kubeflow.org", "{.spec.versions[*].name}", "v2beta1")
	kubectl(t, ready, `apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: mpi}
spec:
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: mpi, image: none}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: mpi, image: none}]}}}
`, "create", "-f", "-")
	waitForField(t, ready, "mpijob/mpi", `{.status.conditions[?(@.type=="Succeeded")].status}`, "True")
	phases := kubectl(t, ready, "", "get", "pods", "-l", "training.kubeflow.org/job-name=mpi", "-o", "jsonpath={.items[*].status.phase}")
	if found := slices.Sorted(strings.FieldsSeq(phases)); !slices.Equal(found, []string{"Running", "Running", "Succeeded"}) {
		t.Errorf("the pods are %v: the workers should wait for a launcher, and outlive it", found)
	}
}

func webhooksRefuse(t *testing.T, ready *cluster.Ready) {
	refused(t, ready, `apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: wrong}
spec:
  successPolicy: {operator: All, targetReplicatedJobs: [other]}
  replicatedJobs:
  - name: main
    template: {spec: {template: {spec: {containers: [{name: main, image: none}]}}}}
`, "'other' does not appear")
	refused(t, ready, `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: wrong}
spec: {runtimeRef: {name: other}}
`, "must be created before the TrainJob is created")
}
