package resourcequota

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/test/harness"
)

// resources of the kinds that these tests use.
var resources = map[string]schema.GroupVersionResource{
	"Job": harness.Jobs, "TFJob": harness.TFJobs, "RayJob": harness.RayJobs, "SparkApplication": harness.SparkApplications,
}

// container has the resources of a container as in a manifest, or "".
type container struct{ requests, limits string }

// cpu returns a container with a cpu request and no limit.
func cpu(amount string) container { return container{requests: "cpu: " + amount} }

func (c container) String() string {
	return fmt.Sprintf("{requests: {%s}, limits: {%s}}", c.requests, c.limits)
}

// pods is a group of equal pods of a job.
type pods struct {
	count int
	container
}

// one is a pod that requests this many CPUs.
func one(amount string) pods { return pods{count: 1, container: cpu(amount)} }

// ends are the annotations of pods that the test ends.
func ends(fails bool) string {
	code := 0
	if fails {
		code = 1
	}
	return fmt.Sprintf(`{%s: %q, %s: "%d"}`, harness.RunTime, harness.UntilFinished.String(), harness.ExitCode, code)
}

// stays are the annotations of pods that end with their job.
const stays = "{" + harness.RunTime + ": never}"

func (p pods) template(annotations, name string) string {
	return fmt.Sprintf("{metadata: {annotations: %s}, spec: {restartPolicy: Never, containers: [{name: %s, image: busybox, resources: %v}]}}",
		annotations, name, p.container)
}

// job returns a Job whose pods all run at the same time.
func job(name string, of pods) string { return endingJob(name, of, false) }

func endingJob(name string, of pods, fails bool) string {
	return fmt.Sprintf("---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: %s}\n"+
		"spec: {suspend: true, parallelism: %d, completions: %d, backoffLimit: 0, template: %s}\n",
		name, of.count, of.count, of.template(ends(fails), "main"))
}

// tfjob returns a TFJob with a parameter server, and workers that end it.
func tfjob(name string, server, workers pods, fails bool) string {
	return fmt.Sprintf(`---
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: %s, annotations: {scheduling.x-k8s.io/suspend: "true"}}
spec:
  tfReplicaSpecs:
    PS: {replicas: %d, restartPolicy: Never, template: %s}
    Worker: {replicas: %d, restartPolicy: Never, template: %s}
`, name, server.count, server.template(stays, "tensorflow"), workers.count, workers.template(ends(fails), "tensorflow"))
}

// rayjob returns a RayJob with the default submitter of KubeRay.
func rayjob(name string, head, workers pods, fails bool) string {
	return fmt.Sprintf(`---
apiVersion: ray.io/v1
kind: RayJob
metadata: {name: %s, annotations: %s}
spec:
  suspend: true
  shutdownAfterJobFinishes: true
  backoffLimit: 0
  entrypoint: python main.py
  rayClusterSpec:
    headGroupSpec: {rayStartParams: {}, template: %s}
    workerGroupSpecs: [{groupName: small, replicas: %d, minReplicas: 1, maxReplicas: 9, rayStartParams: {}, template: %s}]
`, name, ends(fails), head.ray(), workers.count, workers.ray())
}

func (p pods) ray() string {
	return fmt.Sprintf("{spec: {containers: [{name: ray, image: ray, resources: %v}]}}", p.container)
}

// spark returns a SparkApplication. Driver and executors have 512m of memory each, plus Spark's overhead. Its
// submission is retried: with many concurrent writes of a ResourceQuota, the API server may return a conflict, which
// the operator mistakes for an existing driver pod.
func spark(name string, executors int, coreRequest string, fails bool) string {
	cores := fmt.Sprintf(`cores: 1, coreRequest: %q, coreLimit: "1"`, coreRequest)
	return fmt.Sprintf(`---
apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {name: %[1]s, annotations: {scheduling.x-k8s.io/suspend: "true"}}
spec:
  type: Scala
  mode: cluster
  image: spark
  mainClass: main
  mainApplicationFile: local:///main.jar
  sparkVersion: 4.0.0
  restartPolicy: {type: OnFailure, onSubmissionFailureRetries: 9, onSubmissionFailureRetryInterval: 1, onFailureRetryInterval: 1}
  driver: {%[2]s, memory: 512m, serviceAccount: default, annotations: %[3]s}
  executor: {%[2]s, memory: 512m, instances: %[4]d}
`, name, cores, ends(fails), executors)
}

// quota returns a ResourceQuota with hard as in a manifest.
func quota(name, hard string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: ResourceQuota\nmetadata: {name: %s}\nspec: {hard: {%s}}\n", name, hard)
}

// patience is the timeout of all waits. It matters only for a failing test.
const patience = 2 * time.Minute
