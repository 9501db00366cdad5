package harness

import (
	"fmt"
	"strings"
	"time"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/require"
)

// Job is a batch Job that runs one pod at a time and is held by its suspend field.
type Job struct {
	Name, CPU string
	// Namespace defaults to the namespace of the Env.
	Namespace string
	// Runs is how long a pod runs. The default is that of the cluster.
	Runs  time.Duration
	Fails bool
	// Completions is the number of pods, which run one after the other; 0 means 1.
	Completions int
	// Marked: the annotation holds it instead. Unheld: nothing does.
	Marked, Unheld bool
	// Annotations are additional annotations, as in a manifest.
	Annotations string
}

func (j Job) String() string {
	annotations, suspend := j.Annotations, "  suspend: true\n"
	if j.Marked {
		annotations = `scheduling.x-k8s.io/suspend: "true", ` + annotations
	}
	if j.Marked || j.Unheld {
		suspend = ""
	}
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: %q, annotations: {%s}}
spec:
%s  backoffLimit: 0
  parallelism: 1
  completions: %d
  template:
    metadata: {annotations: {%s}}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox, resources: {requests: {cpu: %q}}}]
---
`, j.Name, j.Namespace, annotations, suspend, max(j.Completions, 1), PodAnnotations(j.Runs, j.Fails), j.CPU)
}

// MarkedJob is the manifest of a marked Job in a namespace.
func MarkedJob(namespace, name, cpu string) string {
	return Job{Namespace: namespace, Name: name, CPU: cpu, Marked: true}.String()
}

// TFJob is a TFJob with equal pods, held by the annotation.
type TFJob struct {
	Name string
	// Servers and Workers are the numbers of pods. Without workers, it gets one.
	Servers, Workers int
	CPU              string
	Runs             time.Duration
	Fails            bool
	// Unheld: its annotation is false.
	Unheld bool
}

func (j TFJob) String() string {
	replicas := func(role string, count int) string {
		return fmt.Sprintf(`    %s:
      replicas: %d
      restartPolicy: Never
      template:
        metadata: {annotations: {%s}}
        spec: {containers: [{name: tensorflow, image: busybox, resources: {requests: {cpu: %q}}}]}
`, role, count, PodAnnotations(j.Runs, j.Fails), j.CPU)
	}
	servers := ""
	if j.Servers > 0 {
		servers = replicas("PS", j.Servers)
	}
	return fmt.Sprintf(`apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: %s, annotations: {scheduling.x-k8s.io/suspend: "%t"}}
spec:
  tfReplicaSpecs:
%s%s---
`, j.Name, !j.Unheld, servers, replicas("Worker", max(j.Workers, 1)))
}

// PodAnnotations are the annotations of pods that run this long and then succeed or fail.
func PodAnnotations(runs time.Duration, fails bool) string {
	var all []string
	if runs != 0 {
		all = append(all, fmt.Sprintf("%s: %q", RunTime, runs))
	}
	if fails {
		all = append(all, ExitCode+`: "1"`)
	}
	return strings.Join(all, ", ")
}

// RunPair applies the users' pair of TFJobs. The quota in force has room for one. The second waits with a message
// that has these words, and runs after the first. It returns the unit of the second while it waits.
func (l *Env) RunPair(words ...string) *schedulingv1alpha1.QueueUnit {
	l.t.Helper()
	l.Apply(l.Read("tfjob-pair.yaml"))
	l.WaitForState(TFJobs, "job2", "Queuing")
	l.WaitForState(TFJobs, "job1", "Running")
	waits := l.WaitForReason("TFJob", "job2", "QuotaExceeded")
	require.Says(l.t, "the message", waits.Status.Message, words...)
	for _, name := range []string{"job1", "job2"} {
		l.WaitForPhase("TFJob", name, "Running")
		l.Finish(TFJobs, name)
		l.WaitForPhase("TFJob", name, "Succeeded")
		l.WaitForState(TFJobs, name, "Succeeded")
	}
	l.ExpectOneAfterTheOther("TFJob", "job1", "job2")
	return waits
}

// RayCluster is a RayCluster whose workers an autoscaler adds and removes. Its head requests 500m.
type RayCluster struct {
	Name                 string
	Workers, Least, Most int
	// CPU is what a worker requests.
	CPU string
}

func (c RayCluster) String() string {
	const head, worker = "{name: head, image: rayproject/ray:2.52.0, resources: {requests: {cpu: 500m}}}", "{name: worker, image: rayproject/ray:2.52.0, resources: {requests: {cpu: %q}}}"
	return fmt.Sprintf(`---
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: %s}
spec:
  suspend: true
  rayVersion: 2.52.0
  enableInTreeAutoscaling: true
  headGroupSpec: {rayStartParams: {}, template: {spec: {containers: [`+head+`]}}}
  workerGroupSpecs:
  - {groupName: small, replicas: %d, minReplicas: %d, maxReplicas: %d, rayStartParams: {}, template: {spec: {containers: [`+worker+`]}}}
`, c.Name, c.Workers, c.Least, c.Most, c.CPU)
}
