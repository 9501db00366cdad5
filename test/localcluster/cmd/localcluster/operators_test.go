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

// TestOperatorsRunSideBySide runs all operators, while the default ports of two of them are in use, in a
// folder whose name contains special characters. test/frameworks runs a job of each kind from submission to
// end; the parts show what its jobs do not have. They run in parallel, because they mostly wait.
func TestOperatorsRunSideBySide(t *testing.T) {
	onlyInTestAll(t, "test/frameworks runs a job of each kind from submission to end, and internal/standin shows what the stand-ins do")
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
			"mpi-operator serves MPIJob":                      mpiJobs,
			"the webhooks of JobSet and Trainer refuse":       webhooksRefuse,
			"a RayJob ends as it is reported in every mode":   rayJobModes,
			"the submitter of a RayJob stays with a long job": raySubmitterStays,
			"a Workflow gets the outputs of its steps":        workflowSteps,
			"a Workflow that runs can be stopped":             workflowStopped,
			"a SparkApplication in Python has a template":     sparkPython,
			"a SparkApplication without its account fails":    sparkRefused,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, ready)
			})
		}
	})
	if left, err := filepath.Glob("/tmp/spark/*/*-pod-template.yaml"); err == nil {
		for _, path := range left {
			if content, err := os.ReadFile(path); err == nil && strings.Contains(string(content), "name: localcluster-test-") {
				t.Errorf("%s is left", path)
			}
		}
	}
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
		got, err := tryKubectl(ready, "", "-n", namespaceOf(resource), "get", resource, "-o", "jsonpath="+jsonpath)
		if err == nil && got != want {
			err = fmt.Errorf("it is %q, want %q", got, want)
		}
		return err
	})
}

// namespaceOf returns the namespace of test objects: drivers of Spark have their account only in that of the
// operator.
func namespaceOf(resource string) string {
	if strings.HasPrefix(resource, "sparkapplication/") {
		return "spark-operator"
	}
	return "default"
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

// rayJobYAML returns a RayJob whose cluster has only a head. The lines of spec come first.
func rayJobYAML(name, annotations string, spec ...string) string {
	return fmt.Sprintf(`---
apiVersion: ray.io/v1
kind: RayJob
metadata: {name: %s, annotations: {%s}}
spec:
  entrypoint: python x.py
  rayClusterSpec:
    headGroupSpec:
      rayStartParams: {}
      template: {spec: {containers: [{name: ray-head, image: none, resources: {requests: {cpu: 100m}}}]}}
  %s
`, name, annotations, strings.Join(spec, "\n  "))
}

const rayState = "{.status.jobDeploymentStatus}/{.status.jobStatus}"

func rayJobModes(t *testing.T, ready *cluster.Ready) {
	const fails = `localcluster.kube-queue.dev/exit-code: "1"`
	jobs := []struct{ name, annotations, mode, end, submitter string }{
		{"fails", fails, "K8sJobMode", "Failed/FAILED", "Succeeded"},
		{"http", "", "HTTPMode", "Complete/SUCCEEDED", ""},
		{"http-fails", fails, "HTTPMode", "Failed/FAILED", ""},
		{"side", "", "SidecarMode", "Complete/SUCCEEDED", "0"},
		{"side-fails", fails, "SidecarMode", "Failed/FAILED", "1"},
	}
	for _, job := range jobs {
		kubectl(t, ready, rayJobYAML(job.name, job.annotations, "submissionMode: "+job.mode), "create", "-f", "-")
	}
	for _, job := range jobs {
		waitForField(t, ready, "rayjob/"+job.name, rayState, job.end)
		selector, field := "job-name="+job.name, "{.items[*].status.phase}"
		if job.mode == "SidecarMode" {
			selector = "ray.io/node-type=head,ray.io/cluster=" + kubectl(t, ready, "", "get", "rayjob", job.name, "-o", "jsonpath={.status.rayClusterName}")
			field = `{.items[*].status.containerStatuses[?(@.name=="ray-job-submitter")].state.terminated.exitCode}`
		}
		if got := kubectl(t, ready, "", "get", "pods", "-l", selector, "-o", "jsonpath="+field); got != job.submitter {
			t.Errorf("the submitter of %s is %q, want %q", job.name, got, job.submitter)
		}
	}
}

func raySubmitterStays(t *testing.T, ready *cluster.Ready) {
	kubectl(t, ready, rayJobYAML("long", "localcluster.kube-queue.dev/run-time: never"), "create", "-f", "-")
	waitForField(t, ready, "rayjob/long", rayState, "Running/RUNNING")
	// When another job has ended, the submitter would have ended too.
	kubectl(t, ready, rayJobYAML("usual", ""), "create", "-f", "-")
	waitForField(t, ready, "rayjob/usual", rayState, "Complete/SUCCEEDED")
	if got := kubectl(t, ready, "", "get", "pods", "-l", "job-name=long", "-o", "jsonpath={.items[*].status.phase}"); got != "Running" {
		t.Errorf("the submitter of a job that runs is %q", got)
	}
	kubectl(t, ready, "", "delete", "rayjob", "long", "--wait=false")
	eventually(t, "the job is stopped", func() error {
		if log := succeed(t, "logs", "--data", ready.Data, "ray-dashboard").out; !strings.Contains(log, `/stop: {"stopped":true}`) {
			return errors.New(log)
		}
		return nil
	})
}

func workflowSteps(t *testing.T, ready *cluster.Ready) {
	kubectl(t, ready, `apiVersion: argoproj.io/v1alpha1
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
`, "create", "-f", "-")
	waitForField(t, ready, "workflow/steps", "{.status.phase}", "Succeeded")
	takes := kubectl(t, ready, "", "get", "pods", "-l", "workflows.argoproj.io/workflow=steps", "-o", "jsonpath={.items[*].metadata.annotations.takes}")
	if got := slices.Sorted(strings.FieldsSeq(takes)); !slices.Equal(got, []string{"given", "said"}) {
		t.Errorf("its steps take %q", got)
	}
}

func workflowStopped(t *testing.T, ready *cluster.Ready) {
	kubectl(t, ready, `apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: stopped}
spec:
  entrypoint: main
  templates:
  - name: main
    metadata: {annotations: {localcluster.kube-queue.dev/run-time: never}}
    container: {image: none, command: [none]}
`, "create", "-f", "-")
	waitForPod(t, ready, "stopped", "Running wait=true// main=true// True")
	kubectl(t, ready, "", "patch", "workflow", "stopped", "--type=merge", "-p", `{"spec":{"shutdown":"Terminate"}}`)
	waitForField(t, ready, "workflow/stopped", "{.status.phase}", "Failed")
	waitForPod(t, ready, "stopped", "Failed wait=false/Error/143 main=false/Error/143 False")
}

// sparkYAML returns an application. more is added to the spec.
func sparkYAML(name, kind, more string) string {
	return fmt.Sprintf(`apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {name: localcluster-test-%s, namespace: spark-operator}
spec:
  type: %s
  mode: cluster
  image: none
  mainApplicationFile: local:///none.py
  sparkVersion: "3.5.0"
%s`, name, kind, more)
}

func sparkPython(t *testing.T, ready *cluster.Ready) {
	kubectl(t, ready, sparkYAML("python", "Python", `
  sparkConf: {spark.kubernetes.executor.deleteOnTermination: "false"}
  dynamicAllocation: {enabled: true, initialExecutors: 1}
  driver:
    memory: 2g
    template:
      metadata: {annotations: {text: "one: 'a'\n\n  two\n"}}
      spec: {containers: [{name: spark-kubernetes-driver}, {name: side, image: none, resources: {requests: {cpu: 100m}}}]}
  executor: {memory: 2g, coreRequest: 250m}
`), "create", "-f", "-")
	waitForField(t, ready, "sparkapplication/localcluster-test-python", "{.status.applicationState.state}", "COMPLETED")
	pods := func(fields string) string {
		t.Helper()
		return kubectl(t, ready, "", "-n", "spark-operator", "get", "pods", "-l", "sparkoperator.k8s.io/app-name=localcluster-test-python",
			"--sort-by=.metadata.labels.spark-role", "-o", "jsonpath={range .items[*]}"+fields+"{end}")
	}
	const resources = `{range .spec.containers[*]}{.name} {.resources.requests.cpu} {.resources.requests.memory} {.resources.limits.memory}{"\n"}{end}`
	if got, want := pods(resources), "spark-kubernetes-driver 1 2867Mi 2867Mi\nside 100m  \nspark-kubernetes-executor 250m 2867Mi 2867Mi\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got, want := pods("{.metadata.annotations.text}"), "one: 'a'\n\n  two\n"; got != want {
		t.Errorf("the template's text is %q, want %q", got, want)
	}
	eventually(t, "executor", func() error {
		if got := pods("{.status.phase} "); got != "Succeeded Succeeded " {
			return fmt.Errorf("the pods are %s", got)
		}
		return nil
	})
}

func sparkRefused(t *testing.T, ready *cluster.Ready) {
	kubectl(t, ready, sparkYAML("refused", "Scala", `
  driver: {serviceAccount: nobody}
  executor: {instances: 1}
`), "create", "-f", "-")
	eventually(t, "application without its account", func() error {
		why, err := tryKubectl(ready, "", "-n", "spark-operator", "get", "sparkapplication", "localcluster-test-refused", "-o", "jsonpath={.status.applicationState}")
		if err == nil && (!strings.Contains(why, `"FAILED"`) || !strings.Contains(why, `serviceaccount \"nobody\" not found`)) {
			err = errors.New(why)
		}
		return err
	})
}
