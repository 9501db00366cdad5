package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/localcluster/internal/cluster"
)

// podYAML returns a pod with an init container, a sidecar and two containers.
func podYAML(name, ownerKind, runTime, exitCode string) string {
	yaml := "apiVersion: v1\nkind: Pod\nmetadata:\n  name: " + name + "\n  annotations:\n    made-by: test\n"
	if runTime != "" {
		yaml += fmt.Sprintf("    localcluster.kube-queue.dev/run-time: %q\n", runTime)
	}
	if exitCode != "" {
		yaml += fmt.Sprintf("    localcluster.kube-queue.dev/exit-code: %q\n", exitCode)
	}
	if ownerKind != "" {
		// The API group is not served, so the garbage collector does not look for the owner.
		yaml += fmt.Sprintf("  ownerReferences: [{apiVersion: owners.example.com/v1, kind: %s, name: owner, uid: some-owner, controller: true}]\n", ownerKind)
	}
	return yaml + `spec:
  restartPolicy: Never
  initContainers:
  - {name: first, image: none}
  - {name: side, image: none, restartPolicy: Always}
  containers:
  - {name: a, image: none, resources: {requests: {cpu: 10m}}}
  - {name: b, image: none}
`
}

func podsEnd(t *testing.T, ready *cluster.Ready) {
	const (
		runs      = "Running a=true// b=true// True"
		succeeded = "Succeeded a=false/Completed/0 b=false/Completed/0 False"
		failed    = "Failed a=false/Error/3 b=false/Error/3 False"
	)
	tests := []struct{ name, owner, runTime, exitCode, want string }{
		{"of-a-tfjob", "TFJob", "", "", succeeded},
		{"of-a-pytorchjob", "PyTorchJob", "", "", succeeded},
		{"launcher-of-an-mpijob", "MPIJob", "", "", succeeded},
		{"worker-of-an-mpijob-with-time", "MPIJob", "1s", "3", failed},
		{"of-a-workflow", "Workflow", "", "", succeeded},
		{"of-a-spark-application", "SparkApplication", "", "", succeeded},
		{"of-a-spark-driver", "Pod", "", "", succeeded},
		{"of-a-job-that-fails", "Job", "", "3", failed},
		{"quick", "TFJob", "1ms", "", succeeded},
		{"alone-with-time", "", "1.5s", "3", failed},
		{"of-a-raycluster-with-time", "RayCluster", "0h0m1s", "", succeeded},
		{"alone", "", "", "", runs},
		{"of-a-raycluster", "RayCluster", "", "", runs},
		{"of-a-replicaset", "ReplicaSet", "", "", runs},
		{"worker-of-an-mpijob", "MPIJob", "", "", runs},
		{"worker-of-an-older-mpijob", "MPIJob", "", "", runs},
		{"never", "TFJob", "never", "", runs},
	}
	roles := map[string]string{
		"launcher-of-an-mpijob":         "training.kubeflow.org/job-role: launcher",
		"worker-of-an-mpijob":           "training.kubeflow.org/job-role: worker",
		"worker-of-an-mpijob-with-time": "training.kubeflow.org/job-role: worker",
		"worker-of-an-older-mpijob":     "training.kubeflow.org/replica-type: worker",
		"of-a-tfjob":                    "training.kubeflow.org/replica-type: worker",
	}
	var all []string
	for _, test := range tests {
		pod := podYAML(test.name, test.owner, test.runTime, test.exitCode)
		if role := roles[test.name]; role != "" {
			pod = strings.Replace(pod, "metadata:\n", "metadata:\n  labels: {"+role+"}\n", 1)
		}
		all = append(all, pod)
	}
	kubectl(t, ready, strings.Join(all, "---\n"), "create", "-f", "-")
	// Wait first for the jobs that end. After that the others would have ended too.
	for _, test := range tests {
		waitForPod(t, ready, test.name, test.want)
	}

	containers := `jsonpath={.status.podIP}/{.status.initContainerStatuses[0].state.terminated.exitCode}/{.status.initContainerStatuses[1].state.terminated.exitCode}`
	if got := kubectl(t, ready, "", "get", "pod", "of-a-job-that-fails", "-o", containers); !strings.HasPrefix(got, "10.") || !strings.HasSuffix(got, "/0/0") {
		t.Errorf("address and init containers of an ended pod: %s", got)
	}
	if got := kubectl(t, ready, "", "get", "pod", "alone", "-o", containers); !strings.HasSuffix(got, "/0/") {
		t.Errorf("address and init containers of a pod that runs: %s", got)
	}
}

func podDeletion(t *testing.T, ready *cluster.Ready) {
	kubectl(t, ready, podYAML("deleted", "", "", ""), "create", "-f", "-")
	held := strings.Replace(podYAML("held", "", "", ""), "metadata:\n", "metadata:\n  finalizers: [example.com/held]\n", 1)
	kubectl(t, ready, held, "create", "-f", "-")
	for _, name := range []string{"deleted", "held"} {
		waitForPod(t, ready, name, "Running a=true// b=true// True")
	}
	kubectl(t, ready, "", "delete", "pod", "deleted", "held", "--wait=false")
	waitGone(t, ready, "pod", "deleted")
	waitForPod(t, ready, "held", "Failed a=false/Error/143 b=false/Error/143 False")
	kubectl(t, ready, "", "patch", "pod", "held", "--type=json", "-p", `[{"op":"remove","path":"/metadata/finalizers"}]`)
	waitGone(t, ready, "pod", "held")
}

func batchJobs(t *testing.T, ready *cluster.Ready) {
	job := func(name, exitCode string) string {
		return fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: %s}
spec:
  backoffLimit: 0
  parallelism: 2
  completions: 2
  template:
    metadata:
      annotations: {localcluster.kube-queue.dev/run-time: 500ms, localcluster.kube-queue.dev/exit-code: %q}
    spec: {restartPolicy: Never, containers: [{name: main, image: none}]}
---`, name, exitCode)
	}
	kubectl(t, ready, job("completes", "0")+job("fails", "1"), "create", "-f", "-")
	for name, want := range map[string]string{"completes": "Complete", "fails": "Failed"} {
		eventually(t, "job "+name, func() error {
			got, err := tryKubectl(ready, "", "get", "job", name, "-o", `jsonpath={.status.conditions[?(@.status=="True")].type}`)
			if err == nil && !strings.Contains(got, want) {
				err = fmt.Errorf("it is %q, want %s", got, want)
			}
			return err
		})
	}
}

const trainingYAML = `
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: tf}
spec:
  runPolicy: {suspend: true, cleanPodPolicy: None}
  tfReplicaSpecs:
    PS: {replicas: 1, template: {spec: {containers: [{name: tensorflow, image: none}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: tensorflow, image: none}]}}}
---
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: torch}
spec:
  runPolicy: {suspend: true}
  pytorchReplicaSpecs:
    Master: {replicas: 1, template: {spec: {containers: [{name: pytorch, image: none}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, image: none}]}}}
---
apiVersion: kubeflow.org/v1
kind: MPIJob
metadata: {name: mpi}
spec:
  runPolicy: {suspend: true}
  mpiReplicaSpecs:
    Launcher: {replicas: 1, template: {spec: {containers: [{name: mpi, image: none}]}}}
    Worker: {replicas: 1, template: {spec: {containers: [{name: mpi, image: none}]}}}
`

func trainingJobs(t *testing.T, ready *cluster.Ready) {
	kubectl(t, ready, "", "create", "namespace", "training")
	eventually(t, "service account", func() error {
		_, err := tryKubectl(ready, "", "-n", "training", "get", "serviceaccount", "default")
		return err
	})
	kubectl(t, ready, trainingYAML, "-n", "training", "create", "-f", "-")
	jobs := []struct {
		kind, name string
		pods       int
	}{{"tfjob", "tf", 3}, {"pytorchjob", "torch", 3}, {"mpijob", "mpi", 2}}
	state := func(kind, name, want string) {
		t.Helper()
		eventually(t, kind+" "+name, func() error {
			// Read the printed column by its header.
			out, err := tryKubectl(ready, "", "-n", "training", "get", kind, name)
			if err == nil && !slices.Contains(strings.Fields(out), want) {
				err = errors.New(out)
			}
			return err
		})
	}
	for _, job := range jobs {
		state(job.kind, job.name, "Suspended")
	}
	if pods := kubectl(t, ready, "", "-n", "training", "get", "pods", "-o", "name"); pods != "" {
		t.Errorf("suspended jobs have pods: %s", pods)
	}
	for _, job := range jobs {
		kubectl(t, ready, "", "-n", "training", "patch", job.kind, job.name, "--type=merge", "-p", `{"spec":{"runPolicy":{"suspend":false}}}`)
	}
	for _, job := range jobs {
		state(job.kind, job.name, "Succeeded")
		pods := kubectl(t, ready, "", "-n", "training", "get", "pods", "-l", "training.kubeflow.org/job-name="+job.name, "-o", "name")
		if got := strings.Count(pods, "\n"); got != job.pods {
			t.Errorf("%s %s has %d pods, want %d: %s", job.kind, job.name, got, job.pods, pods)
		}
	}
	if phase := kubectl(t, ready, "", "-n", "training", "get", "pod", "mpi-worker-0", "-o", "jsonpath={.status.phase}"); phase != "Running" {
		t.Errorf("the worker of an MPIJob whose launcher has ended is %s", phase)
	}
}
