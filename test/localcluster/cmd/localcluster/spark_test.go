package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/localcluster/internal/cluster"
)

// sparkYAML returns a suspended application. more is added to the spec.
func sparkYAML(name, more string) string {
	return fmt.Sprintf(`
apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {name: %s, namespace: spark-operator}
spec:
  suspend: true
  type: Scala
  mode: cluster
  image: none
  mainApplicationFile: local:///none.jar
  sparkVersion: "3.5.0"
%s---
`, name, more)
}

// TestSparkApplicationsRunWithTheirExecutors uses a data folder whose name contains special
// characters.
func TestSparkApplicationsRunWithTheirExecutors(t *testing.T) {
	onlyInTestAll(t, "test/frameworks runs a SparkApplication from submission to end")
	data := filepath.Join(t.TempDir(), "a folder, of Spark")
	running := startRun(t, command("run", "--data", data, "--nodes=2", "--pod-run-time=2s", "--operators=spark-operator"))
	ready := running.ready(t)
	parts := status(t, data).Parts
	t.Run("applications", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *cluster.Ready){
			"one that waits, runs and completes":      sparkCompletes,
			"one that fails":                          sparkFails,
			"one in Python with a template":           sparkPython,
			"one that is suspended and runs again":    sparkSuspended,
			"one that is deleted while it runs":       sparkDeleted,
			"one that requests what there is nothing": sparkRefused,
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
	running.stdin.Close()
	if r := running.wait(t); r.code != 0 {
		t.Errorf("got %+v", r)
	}
	nothingLeft(t, data, parts...)
}

// inSpark runs kubectl in the namespace of the applications.
func inSpark(ready *cluster.Ready, args ...string) (string, error) {
	return tryKubectl(ready, "", append([]string{"-n", "spark-operator"}, args...)...)
}

func waitForSpark(t *testing.T, ready *cluster.Ready, name, want string) {
	t.Helper()
	eventually(t, "application "+name, func() error {
		got, err := inSpark(ready, "get", "sparkapplication", name, "-o", "jsonpath={.status.applicationState.state}")
		if err == nil && got != want {
			err = fmt.Errorf("it is %q, want %s", got, want)
		}
		return err
	})
}

func suspendSpark(t *testing.T, ready *cluster.Ready, name string, suspend bool) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"suspend":%t}}`, suspend)
	if _, err := inSpark(ready, "patch", "sparkapplication", name, "--type=merge", "-p", patch); err != nil {
		t.Fatal(err)
	}
}

// waitForSparkPods waits until the pods of an application have these roles and phases.
func waitForSparkPods(t *testing.T, ready *cluster.Ready, name, want string) {
	t.Helper()
	eventually(t, "pods of "+name, func() error {
		got, err := inSpark(ready, "get", "pods", "-l", "sparkoperator.k8s.io/app-name="+name, "--sort-by=.metadata.labels.spark-role",
			"-o", `jsonpath={range .items[*]}{.metadata.labels.spark-role} {.status.phase}{"\n"}{end}`)
		if got = strings.Join(strings.Fields(got), " "); err == nil && got != want {
			err = fmt.Errorf("they are %q, want %q", got, want)
		}
		return err
	})
}

func sparkResources(t *testing.T, ready *cluster.Ready, selector string) string {
	t.Helper()
	out, err := inSpark(ready, "get", "pods", "-l", selector, "-o",
		`jsonpath={range .items[*]}{range .spec.containers[*]}{.name} {.resources.requests.cpu} {.resources.limits.cpu} {.resources.requests.memory} {.resources.limits.memory}{"\n"}{end}{end}`)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func sparkCompletes(t *testing.T, ready *cluster.Ready) {
	kubectl(t, ready, sparkYAML("localcluster-test-completes", `
  driver:
    cores: 1
    coreLimit: 1200m
    memory: 512m
    serviceAccount: spark-operator-spark
    annotations: {localcluster.kube-queue.dev/run-time: never}
  executor: {cores: 1, instances: 2, memory: 512m}
`), "create", "-f", "-")
	waitForSpark(t, ready, "localcluster-test-completes", "SUSPENDED")
	waitForSparkPods(t, ready, "localcluster-test-completes", "")
	suspendSpark(t, ready, "localcluster-test-completes", false)
	waitForSparkPods(t, ready, "localcluster-test-completes", "driver Running executor Running executor Running")
	want := "spark-kubernetes-driver 1 1200m 896Mi 896Mi\n" + strings.Repeat("spark-kubernetes-executor 1  896Mi 896Mi\n", 2)
	app := "sparkoperator.k8s.io/app-name=localcluster-test-completes"
	if got := sparkResources(t, ready, app+",spark-role=driver") + sparkResources(t, ready, app+",spark-role=executor"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	waitForSpark(t, ready, "localcluster-test-completes", "RUNNING")
	if _, err := inSpark(ready, "annotate", "--overwrite", "pod", "localcluster-test-completes-driver", "localcluster.kube-queue.dev/run-time=1ms"); err != nil {
		t.Fatal(err)
	}
	waitForSpark(t, ready, "localcluster-test-completes", "COMPLETED")
	waitForSparkPods(t, ready, "localcluster-test-completes", "driver Succeeded")
	states, err := inSpark(ready, "get", "sparkapplication", "localcluster-test-completes", "-o", "jsonpath={.status.executorState}")
	if err != nil || strings.Count(states, "COMPLETED") != 2 {
		t.Errorf("the executors are %s, %v", states, err)
	}
}

func sparkFails(t *testing.T, ready *cluster.Ready) {
	kubectl(t, ready, sparkYAML("localcluster-test-fails", `
  driver: {annotations: {localcluster.kube-queue.dev/run-time: 500ms, localcluster.kube-queue.dev/exit-code: "7"}}
  executor: {instances: 1}
`), "create", "-f", "-")
	suspendSpark(t, ready, "localcluster-test-fails", false)
	waitForSpark(t, ready, "localcluster-test-fails", "FAILED")
	waitForSparkPods(t, ready, "localcluster-test-fails", "driver Failed")
	why, err := inSpark(ready, "get", "sparkapplication", "localcluster-test-fails", "-o", "jsonpath={.status.applicationState.errorMessage}")
	if err != nil || !strings.Contains(why, "ExitCode: 7") {
		t.Errorf("the reason is %q, %v", why, err)
	}
}

func sparkPython(t *testing.T, ready *cluster.Ready) {
	yaml := sparkYAML("localcluster-test-python", `
  sparkConf: {spark.kubernetes.executor.deleteOnTermination: "false"}
  dynamicAllocation: {enabled: true, initialExecutors: 1}
  driver:
    memory: 2g
    template:
      metadata: {annotations: {text: "one: 'a'\n\n  two\n"}}
      spec: {containers: [{name: spark-kubernetes-driver}, {name: side, image: none, resources: {requests: {cpu: 100m}}}]}
  executor: {memory: 2g, coreRequest: 250m}
`)
	yaml = strings.NewReplacer("type: Scala", "type: Python", "none.jar", "none.py").Replace(yaml)
	kubectl(t, ready, yaml, "create", "-f", "-")
	suspendSpark(t, ready, "localcluster-test-python", false)
	waitForSpark(t, ready, "localcluster-test-python", "COMPLETED")
	waitForSparkPods(t, ready, "localcluster-test-python", "driver Succeeded executor Succeeded")
	app := "sparkoperator.k8s.io/app-name=localcluster-test-python"
	got := sparkResources(t, ready, app+",spark-role=driver") + sparkResources(t, ready, app+",spark-role=executor")
	if want := "spark-kubernetes-driver 1  2867Mi 2867Mi\nside 100m   \nspark-kubernetes-executor 250m  2867Mi 2867Mi\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	text, err := inSpark(ready, "get", "pod", "localcluster-test-python-driver", "-o", "jsonpath={.metadata.annotations.text}")
	if want := "one: 'a'\n\n  two\n"; err != nil || text != want {
		t.Errorf("the template's text is %q, %v, want %q", text, err, want)
	}
}

// never keeps a driver running.
const never = `
  driver: {annotations: {localcluster.kube-queue.dev/run-time: never}}
  executor: {instances: 1}
`

func sparkSuspended(t *testing.T, ready *cluster.Ready) {
	kubectl(t, ready, sparkYAML("localcluster-test-suspended", never), "create", "-f", "-")
	suspendSpark(t, ready, "localcluster-test-suspended", false)
	waitForSpark(t, ready, "localcluster-test-suspended", "RUNNING")
	waitForSparkPods(t, ready, "localcluster-test-suspended", "driver Running executor Running")
	suspendSpark(t, ready, "localcluster-test-suspended", true)
	waitForSpark(t, ready, "localcluster-test-suspended", "SUSPENDED")
	waitForSparkPods(t, ready, "localcluster-test-suspended", "")
	suspendSpark(t, ready, "localcluster-test-suspended", false)
	waitForSparkPods(t, ready, "localcluster-test-suspended", "driver Running executor Running")
}

func sparkDeleted(t *testing.T, ready *cluster.Ready) {
	kubectl(t, ready, sparkYAML("localcluster-test-deleted", never), "create", "-f", "-")
	suspendSpark(t, ready, "localcluster-test-deleted", false)
	waitForSparkPods(t, ready, "localcluster-test-deleted", "driver Running executor Running")
	if _, err := inSpark(ready, "delete", "sparkapplication", "localcluster-test-deleted", "--wait=false"); err != nil {
		t.Fatal(err)
	}
	waitForSparkPods(t, ready, "localcluster-test-deleted", "")
}

func sparkRefused(t *testing.T, ready *cluster.Ready) {
	kubectl(t, ready, sparkYAML("localcluster-test-refused", `
  driver: {serviceAccount: nobody}
  executor: {instances: 1}
`), "create", "-f", "-")
	suspendSpark(t, ready, "localcluster-test-refused", false)
	eventually(t, "application localcluster-test-refused", func() error {
		why, err := inSpark(ready, "get", "sparkapplication", "localcluster-test-refused", "-o", "jsonpath={.status.applicationState}")
		if err == nil && (!strings.Contains(why, `"FAILED"`) || !strings.Contains(why, `serviceaccount \"nobody\" not found`)) {
			err = errors.New(why)
		}
		return err
	})
}
