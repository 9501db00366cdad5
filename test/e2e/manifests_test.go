package e2e

import (
	"fmt"
	"strings"
	"time"
)

// job is a batch Job of one pod, held by spec.suspend.
type job struct {
	name, cpu, memory string
	runs              time.Duration
	// annotations and labels as "key: value" lines.
	annotations, labels string
	fails               bool
	unheld              bool
	// completions is the number of pods, which run one after the other; 0 means 1.
	completions int
}

func (j job) String() string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata:
  name: %s
  annotations: {%s}
  labels: {%s}
spec:
  suspend: %t
  backoffLimit: 0
  parallelism: 1
  completions: %d
  template:
    metadata:
      annotations: {%s}
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: busybox
        resources: {requests: {%s}}
---
`, j.name, j.annotations, j.labels, !j.unheld, max(j.completions, 1), podAnnotations(j.runs, j.fails), requests(j.cpu, j.memory))
}

// tfjob is a TFJob with one parameter server and workers, held by the annotation.
type tfjob struct {
	name    string
	workers int
	cpu     string
	runs    time.Duration
	fails   bool
	// annotation is the value of the suspend annotation; "true" if empty.
	annotation string
}

func (j tfjob) String() string {
	if j.annotation == "" {
		j.annotation = "true"
	}
	replica := func(count int) string {
		return fmt.Sprintf(`{replicas: %d, restartPolicy: Never, template: {metadata: {annotations: {%s}}, spec: {containers: [
      {name: tensorflow, image: busybox, resources: {requests: {%s}}}]}}}`, count, podAnnotations(j.runs, j.fails), requests(j.cpu, ""))
	}
	return fmt.Sprintf(`apiVersion: kubeflow.org/v1
kind: TFJob
metadata:
  name: %s
  annotations: {scheduling.x-k8s.io/suspend: "%s"}
spec:
  tfReplicaSpecs:
    PS: %s
    Worker: %s
---
`, j.name, j.annotation, replica(1), replica(j.workers))
}

func podAnnotations(runs time.Duration, fails bool) string {
	var list []string
	if runs != 0 {
		list = append(list, fmt.Sprintf("localcluster.kube-queue.dev/run-time: %q", runs))
	}
	if fails {
		list = append(list, `localcluster.kube-queue.dev/exit-code: "1"`)
	}
	return strings.Join(list, ", ")
}

func requests(cpu, memory string) string {
	var list []string
	if cpu != "" {
		list = append(list, fmt.Sprintf("cpu: %q", cpu))
	}
	if memory != "" {
		list = append(list, fmt.Sprintf("memory: %q", memory))
	}
	return strings.Join(list, ", ")
}
