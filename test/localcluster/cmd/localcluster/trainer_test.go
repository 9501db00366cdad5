package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/localcluster/internal/cluster"
)

// torch is the runtime that the cluster has.
const torch = "torch-distributed"

// trainJobYAML is a suspended job of three nodes, whose pods get the annotations.
func trainJobYAML(name, runtime, annotations string) string {
	return fmt.Sprintf(`---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: %s}
spec:
  suspend: true
  runtimeRef: {name: %s}
  trainer: {numNodes: 3, resourcesPerNode: {requests: {cpu: 100m}}}
  runtimePatches:
  - manager: localcluster.kube-queue.dev/test
    trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {metadata: {annotations: {%s}}}}}}]}}}
`, name, runtime, annotations)
}

// TestTrainJobsRun starts trainer, and jobset with it; most of its parts wait.
func TestTrainJobsRun(t *testing.T) {
	onlyInTestAll(t, "test/frameworks runs a TrainJob from submission to end")
	data := t.TempDir()
	running := startRun(t, command("run", "--data", data, "--nodes=2", "--pod-run-time=2s", "--operators=trainer"))
	ready := running.ready(t)
	parts := status(t, data).Parts
	t.Run("trainer", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *cluster.Ready){
			"a job waits with its JobSet, runs and completes": trainJobWaits,
			"a job fails with a pod":                          trainJobFails,
			"a job that runs can be suspended":                trainJobSuspended,
			"a job that runs can be deleted":                  trainJobDeleted,
			"a job needs a runtime that is there":             trainJobRefused,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, ready)
			})
		}
	})
	running.stdin.Close()
	if r := running.wait(t); r.code != 0 {
		t.Errorf("got %+v", r)
	}
	nothingLeft(t, data, parts...)
}

// startTrainJob makes a job, waits until it is suspended and releases it.
func startTrainJob(t *testing.T, ready *cluster.Ready, name, annotations string) {
	t.Helper()
	kubectl(t, ready, trainJobYAML(name, torch, annotations), "create", "-f", "-")
	waitForCondition(t, ready, "jobset/"+name, "Suspended")
	suspendTrainJob(t, ready, name, false)
}

func suspendTrainJob(t *testing.T, ready *cluster.Ready, name string, suspend bool) {
	t.Helper()
	kubectl(t, ready, "", "patch", "trainjob", name, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"suspend":%t}}`, suspend))
}

func podsOfTrainJob(name string) string { return "jobset.sigs.k8s.io/jobset-name=" + name }

// trainJobStatus waits until the job counts its child Jobs so: active/ready/suspended.
func trainJobStatus(t *testing.T, ready *cluster.Ready, name, want string) {
	t.Helper()
	const counts = "jsonpath={.status.jobsStatus[0].active}/{.status.jobsStatus[0].ready}/{.status.jobsStatus[0].suspended}"
	eventually(t, "child Jobs of "+name, func() error {
		got, err := tryKubectl(ready, "", "get", "trainjob", name, "-o", counts)
		if err == nil && got != want {
			err = errors.New(got)
		}
		return err
	})
}

func trainJobWaits(t *testing.T, ready *cluster.Ready) {
	kubectl(t, ready, trainJobYAML("waits", torch, ""), "create", "-f", "-")
	waitForCondition(t, ready, "trainjob/waits", "Suspended")
	waitForCondition(t, ready, "jobset/waits", "Suspended")
	trainJobStatus(t, ready, "waits", "0/0/1")
	const template = "jsonpath={.spec.replicatedJobs[*].name} {.spec.replicatedJobs[0].replicas} {.spec.replicatedJobs[0].template.spec.parallelism} " +
		"{.spec.replicatedJobs[0].template.spec.template.spec.containers[0].resources.requests} {.metadata.ownerReferences[?(@.controller==true)].kind}"
	if got, want := kubectl(t, ready, "", "get", "jobset", "waits", "-o", template), `node 1 3 {"cpu":"100m","memory":"256Mi"} TrainJob`; got != want {
		t.Errorf("the JobSet of a suspended job has %q, want %q", got, want)
	}
	podsOf(t, ready, podsOfTrainJob("waits"), "")
	suspendTrainJob(t, ready, "waits", false)
	trainJobStatus(t, ready, "waits", "1/1/0")
	waitForCondition(t, ready, "trainjob/waits", "Complete")
	podsOf(t, ready, podsOfTrainJob("waits"), "Succeeded Succeeded Succeeded")
}

func trainJobFails(t *testing.T, ready *cluster.Ready) {
	startTrainJob(t, ready, "fails", exitCode+`"1"`)
	waitForCondition(t, ready, "trainjob/fails", "Failed")
}

func trainJobSuspended(t *testing.T, ready *cluster.Ready) {
	startTrainJob(t, ready, "stops", runTime+"never")
	trainJobStatus(t, ready, "stops", "1/1/0")
	suspendTrainJob(t, ready, "stops", true)
	waitForCondition(t, ready, "trainjob/stops", "Suspended")
	trainJobStatus(t, ready, "stops", "0/0/1")
	podsOf(t, ready, podsOfTrainJob("stops"), "")
	suspendTrainJob(t, ready, "stops", false)
	trainJobStatus(t, ready, "stops", "1/1/0")
}

func trainJobDeleted(t *testing.T, ready *cluster.Ready) {
	startTrainJob(t, ready, "deleted", runTime+"never")
	podsOf(t, ready, podsOfTrainJob("deleted"), "Running Running Running")
	kubectl(t, ready, "", "delete", "trainjob", "deleted")
	waitGone(t, ready, "jobset", "deleted")
	podsOf(t, ready, podsOfTrainJob("deleted"), "")
}

func trainJobRefused(t *testing.T, ready *cluster.Ready) {
	_, err := tryKubectl(ready, trainJobYAML("refused", "other", ""), "create", "-f", "-")
	if err == nil || !strings.Contains(err.Error(), "must be created before the TrainJob is created") {
		t.Errorf("a job without its runtime: %v", err)
	}
}
