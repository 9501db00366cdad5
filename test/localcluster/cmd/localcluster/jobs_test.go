package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/localcluster/internal/cluster"
	"kube-queue.dev/kube-queue/test/require"
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
	// First wait for the jobs that end. By then, the others would have ended too.
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
	waitGone(t, ready, "deleted")
	waitForPod(t, ready, "held", "Failed a=false/Error/143 b=false/Error/143 False")
	kubectl(t, ready, "", "patch", "pod", "held", "--type=json", "-p", `[{"op":"remove","path":"/metadata/finalizers"}]`)
	waitGone(t, ready, "held")
}

func podState(ready *cluster.Ready, name string) (string, error) {
	return tryKubectl(ready, "", "get", "pod", name, "-o",
		`jsonpath={.status.phase}{range .status.containerStatuses[*]} {.name}={.ready}/{.state.terminated.reason}/{.state.terminated.exitCode}{end} {.status.conditions[?(@.type=="Ready")].status}`)
}

func waitForPod(t *testing.T, ready *cluster.Ready, name, want string) {
	t.Helper()
	require.Eventually(t, "pod "+name, func() error {
		got, err := podState(ready, name)
		if err == nil && got != want {
			err = fmt.Errorf("got %q, want %q", got, want)
		}
		return err
	})
}

func waitGone(t *testing.T, ready *cluster.Ready, pod string) {
	t.Helper()
	kubectl(t, ready, "", "wait", "--for=delete", "pod/"+pod, "--timeout="+patience.String())
}

func podClockGoesOn(t *testing.T, ready *cluster.Ready) {
	kubectl(t, ready, podYAML("changing", "", "5s", ""), "create", "-f", "-")
	waitForPod(t, ready, "changing", "Running a=true// b=true// True")
	began := time.Now()
	changes := 0
	require.Eventually(t, "pod changing", func() error {
		changes++
		kubectl(t, ready, "", "label", "--overwrite", "pod", "changing", fmt.Sprintf("change=%d", changes))
		got, err := podState(ready, "changing")
		if err == nil && !strings.HasPrefix(got, "Succeeded") {
			err = errors.New(got)
		}
		return err
	})
	if took := time.Since(began); changes < 3 || took > 15*time.Second {
		t.Errorf("it ended after %v and %d changes", took, changes)
	}
	kubectl(t, ready, podYAML("ended-early", "", "never", ""), "create", "-f", "-")
	waitForPod(t, ready, "ended-early", "Running a=true// b=true// True")
	kubectl(t, ready, "", "annotate", "--overwrite", "pod", "ended-early", "localcluster.kube-queue.dev/run-time=1ms")
	waitForPod(t, ready, "ended-early", "Succeeded a=false/Completed/0 b=false/Completed/0 False")
}
