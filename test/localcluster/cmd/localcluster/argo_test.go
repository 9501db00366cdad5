package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/localcluster/internal/cluster"
)

// workflowsYAML contains workflows whose pods end immediately, and one that does not end.
const workflowsYAML = `
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: waits}
spec:
  suspend: true
  entrypoint: main
  templates:
  - {name: main, container: {image: none, command: [none]}}
---
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: fails}
spec:
  entrypoint: main
  templates:
  - name: main
    metadata: {annotations: {localcluster.kube-queue.dev/exit-code: "3"}}
    container: {image: none, command: [none]}
---
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: steps}
spec:
  entrypoint: main
  templates:
  - name: main
    steps:
    - - {name: one, template: gives}
    - - {name: two, template: takes, arguments: {parameters: [{name: p, value: "{{steps.one.outputs.parameters.p}}"}]}}
      - {name: three, template: says}
    - - {name: four, template: takes, arguments: {parameters: [{name: p, value: "said {{steps.three.outputs.result}}"}]}}
  - name: gives
    container: {image: none, command: [none]}
    outputs: {parameters: [{name: p, valueFrom: {path: /none, default: given}}]}
  - name: takes
    inputs: {parameters: [{name: p}]}
    metadata: {annotations: {takes: "{{inputs.parameters.p}}"}}
    container: {image: none, command: [none]}
  - name: says
    script: {image: none, command: [none], source: none}
---
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: dag}
spec:
  entrypoint: main
  templates:
  - name: main
    dag:
      tasks:
      - {name: a, template: good}
      - {name: b, template: bad, depends: a}
      - {name: c, template: good, depends: b}
  - {name: good, container: {image: none, command: [none]}}
  - name: bad
    metadata: {annotations: {localcluster.kube-queue.dev/exit-code: "1"}}
    container: {image: none, command: [none]}
---
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: stopped}
spec:
  entrypoint: main
  templates:
  - name: main
    metadata: {annotations: {localcluster.kube-queue.dev/run-time: never}}
    container: {image: none, command: [none]}
`

// TestWorkflowsRunStepByStep runs two clusters, because their controllers use the same port. The
// second runs without it.
func TestWorkflowsRunStepByStep(t *testing.T) {
	onlyInTestAll(t, "test/frameworks runs a Workflow from submission to end")
	start := func() (data string, r *running) {
		data = filepath.Join(t.TempDir(), "argo")
		return data, startRun(t, command("run", "--data", data, "--nodes=1", "--pod-run-time=500ms", "--operators=argo-workflows"))
	}
	_, first := start()
	data, running := start()
	first.ready(t)
	ready := running.ready(t)
	first.stdin.Close()
	parts := status(t, data).Parts

	kubectl(t, ready, workflowsYAML, "create", "-f", "-")
	waitForWorkflow(t, ready, "stopped", "Running")
	waitForWorkflow(t, ready, "waits", "Running")
	waitForPod(t, ready, "stopped", "Running wait=true// main=true// True")
	kubectl(t, ready, "", "patch", "workflow", "stopped", "--type=merge", "-p", `{"spec":{"shutdown":"Terminate"}}`)
	for name, want := range map[string]string{"fails": "Failed", "steps": "Succeeded", "dag": "Failed", "stopped": "Failed"} {
		waitForWorkflow(t, ready, name, want)
	}
	waitForPod(t, ready, "stopped", "Failed wait=false/Error/143 main=false/Error/143 False")

	if pods := podsOfWorkflow(t, ready, "waits"); pods != "" {
		t.Errorf("a suspended workflow has pods: %s", pods)
	}
	kubectl(t, ready, "", "patch", "workflow", "waits", "--type=merge", "-p", `{"spec":{"suspend":false}}`)
	waitForWorkflow(t, ready, "waits", "Succeeded")
	for name, want := range map[string]string{
		"waits": "Succeeded\n",
		"fails": "Failed\n",
		"dag":   "Failed\nSucceeded\n",
		"steps": "Succeeded\nSucceeded\nSucceeded given\nSucceeded said\n",
	} {
		if pods := podsOfWorkflow(t, ready, name); pods != want {
			t.Errorf("the pods of %s are\n%swant\n%s", name, pods, want)
		}
	}

	running.stdin.Close()
	for _, r := range []result{first.wait(t), running.wait(t)} {
		if r.code != 0 {
			t.Errorf("got %+v", r)
		}
	}
	nothingLeft(t, data, parts...)
}

func waitForWorkflow(t *testing.T, ready *cluster.Ready, name, want string) {
	t.Helper()
	eventually(t, "workflow "+name, func() error {
		got, err := tryKubectl(ready, "", "get", "workflow", name, "-o", "jsonpath={.status.phase}")
		if err == nil && got != want {
			err = fmt.Errorf("it is %q, want %s", got, want)
		}
		return err
	})
}

// podsOfWorkflow returns the phases of its pods and their arguments.
func podsOfWorkflow(t *testing.T, ready *cluster.Ready, name string) string {
	t.Helper()
	out := kubectl(t, ready, "", "get", "pods", "-l", "workflows.argoproj.io/workflow="+name, "-o",
		`jsonpath={range .items[*]}{.status.phase} {.metadata.annotations.takes}{"\n"}{end}`)
	var lines []string
	for line := range strings.Lines(out) {
		lines = append(lines, strings.TrimSpace(line)+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
