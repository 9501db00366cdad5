package frameworks

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/test/lab"
)

// annotations tell the simulated cluster how long a pod runs and how it ends.
func (j job) annotations() string {
	code := "0"
	if j.fails {
		code = "1"
	}
	return fmt.Sprintf("{localcluster.kube-queue.dev/run-time: %q, localcluster.kube-queue.dev/exit-code: %q}", j.runs, code)
}

// endless are the annotations of pods that end with their job.
const endless = "{localcluster.kube-queue.dev/run-time: never}"

// template is that of a pod with one container.
func template(annotations, container, requests string) string {
	return fmt.Sprintf("{metadata: {annotations: %s}, spec: {restartPolicy: Never, containers: [{name: %s, image: busybox, command: [sleep], resources: %s}]}}",
		annotations, container, requests)
}

// lastCondition is what kubectl shows of a kubeflow job.
func lastCondition(object *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	if len(conditions) == 0 {
		return ""
	}
	kind, _ := conditions[len(conditions)-1].(map[string]any)["type"].(string)
	return kind
}

// conditionTrue is the first of the conditions that is true.
func conditionTrue(names ...string) func(*unstructured.Unstructured) string {
	return func(object *unstructured.Unstructured) string {
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		for _, name := range names {
			for _, c := range conditions {
				if c, ok := c.(map[string]any); ok && c["type"] == name && c["status"] == "True" {
					return name
				}
			}
		}
		return ""
	}
}

// at reads the state at a path.
func at(path ...string) func(*unstructured.Unstructured) string {
	return func(object *unstructured.Unstructured) string {
		value, _, _ := unstructured.NestedString(object.Object, path...)
		return value
	}
}

var kubeflowSuspend = []string{"spec", "runPolicy", "suspend"}

func suspendField() []string { return []string{"spec", "suspend"} }

func kubeflowJob(apiVersion, kind, replicas string) func(job) string {
	return func(j job) string {
		return fmt.Sprintf(`apiVersion: %s
kind: %s
metadata: {name: %s, annotations: {scheduling.x-k8s.io/suspend: "true"}}
spec:
%s`, apiVersion, kind, j.name, fmt.Sprintf(replicas, j.annotations()))
	}
}

var tfJob = specimen{
	kind: "TFJob", resource: lab.TFJobs, extension: "tfjob",
	manifest: kubeflowJob("kubeflow.org/v1", "TFJob", `  tfReplicaSpecs:
    PS: {replicas: 1, restartPolicy: Never, template: `+template(endless, "tensorflow", "{requests: {cpu: 500m, memory: 1Gi}}")+`}
    worker: {replicas: 2, restartPolicy: Never, template: `+template("%s", "tensorflow", `{requests: {cpu: "1"}, limits: {cpu: "2", memory: 2Gi}}`)+`}
`),
	total:   `{cpu: 2500m, memory: 5Gi}`,
	suspend: kubeflowSuspend, state: lastCondition,
	running: "Running", succeeded: "Succeeded", failed: "Failed", queuing: "Queuing", writes: 2,
}

var pyTorchJob = specimen{
	kind: "PyTorchJob", resource: lab.PyTorchJobs, extension: "pytorchjob",
	// A worker waits for its master in an init container, which asks for more.
	manifest: kubeflowJob("kubeflow.org/v1", "PyTorchJob", `  pytorchReplicaSpecs:
    Master: {replicas: 1, restartPolicy: Never, template: `+template("%s", "pytorch", `{requests: {cpu: "1"}}`)+`}
    Worker: {replicas: 2, restartPolicy: Never, template: `+template(endless, "pytorch", `{requests: {cpu: 20m}}`)+`}
`),
	total:   `{cpu: 1100m, memory: 20Mi}`,
	suspend: kubeflowSuspend, state: lastCondition,
	running: "Running", succeeded: "Succeeded", failed: "Failed", queuing: "Queuing", writes: 2,
}

var mpiReplicas = `  mpiReplicaSpecs:
    Launcher: {replicas: 1, restartPolicy: Never, template: ` + template("%s", "mpi", `{requests: {cpu: 500m}}`) + `}
    Worker: {replicas: 2, template: ` + template("{}", "mpi", `{limits: {cpu: "1", memory: 1Gi}}`) + `}
`

var mpiJobV1 = specimen{
	kind: "MPIJob", resource: lab.MPIJobsV1, extension: "mpiv1",
	manifest: kubeflowJob("kubeflow.org/v1", "MPIJob", mpiReplicas),
	// The launcher's init container asks for 512Mi and 5Gi of disk.
	total:   `{cpu: 2500m, memory: 2560Mi, ephemeral-storage: 5Gi}`,
	suspend: kubeflowSuspend, state: lastCondition,
	running: "Running", succeeded: "Succeeded", failed: "Failed", queuing: "Queuing", writes: 2,
}

var mpiJobV2beta1 = specimen{
	kind: "MPIJob", resource: lab.MPIJobsV2beta1, extension: "mpiv2beta1",
	manifest: kubeflowJob("kubeflow.org/v2beta1", "MPIJob", "  runPolicy: {backoffLimit: 0}\n"+mpiReplicas),
	total:    `{cpu: 2500m, memory: 2Gi}`,
	suspend:  kubeflowSuspend, state: conditionTrue("Succeeded", "Failed", "Running", "Queuing"),
	running: "Running", succeeded: "Succeeded", failed: "Failed", queuing: "Queuing", writes: 2,
	jobs: 1, // the launcher
}

var batchJob = specimen{
	kind: "Job", resource: lab.Jobs, extension: "job",
	manifest: func(j job) string {
		return fmt.Sprintf("apiVersion: batch/v1\nkind: Job\nmetadata: {name: %s}\nspec: {suspend: true, parallelism: 2, completions: 2, backoffLimit: 0, template: %s}\n",
			j.name, template(j.annotations(), "main", `{requests: {cpu: 500m}, limits: {memory: 100M}}`))
	},
	total:   `{cpu: "1", memory: 200M}`,
	suspend: suspendField(),
	state: func(object *unstructured.Unstructured) string {
		if state := conditionTrue("Complete", "Failed")(object); state != "" {
			return state
		}
		if ready, _, _ := unstructured.NestedInt64(object.Object, "status", "ready"); ready > 0 {
			return "Running"
		}
		return ""
	},
	running: "Running", succeeded: "Complete", failed: "Failed",
}

var jobSet = specimen{
	kind: "JobSet", resource: lab.JobSets, extension: "jobset",
	manifest: func(j job) string {
		child := func(name string, replicas int) string {
			return fmt.Sprintf("{name: %s, replicas: %d, template: {spec: {parallelism: 2, completions: 2, backoffLimit: 0, template: %s}}}",
				name, replicas, template(j.annotations(), "main", `{requests: {cpu: 250m}}`))
		}
		return fmt.Sprintf("apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: %s}\nspec: {suspend: true, replicatedJobs: [%s, %s]}\n",
			j.name, child("leader", 1), child("worker", 2))
	},
	total:   `{cpu: 1500m}`,
	suspend: suspendField(),
	state: func(object *unstructured.Unstructured) string {
		if state := conditionTrue("Completed", "Failed")(object); state != "" {
			return state
		}
		jobs, _, _ := unstructured.NestedSlice(object.Object, "status", "replicatedJobsStatus")
		ready := int64(0)
		for _, status := range jobs {
			n, _, _ := unstructured.NestedInt64(status.(map[string]any), "ready")
			ready += n
		}
		if ready == 3 {
			return "Running"
		}
		return ""
	},
	running: "Running", succeeded: "Completed", failed: "Failed",
	jobs: 3,
}

var sparkApplication = specimen{
	kind: "SparkApplication", resource: lab.SparkApplications, extension: "sparkapp",
	manifest: func(j job) string {
		return fmt.Sprintf(`apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {name: %s, annotations: {scheduling.x-k8s.io/suspend: "true"}}
spec:
  type: Python
  mode: cluster
  image: spark
  mainApplicationFile: local:///main.py
  sparkVersion: 4.0.0
  driver: {cores: 1, coreRequest: 500m, memory: 2g, serviceAccount: default, annotations: %s}
  executor: {cores: 1, instances: 2, memory: 512m}
`, j.name, j.annotations())
	},
	// Python adds 0.4 of the memory, and 384Mi at least.
	total:   `{cpu: 2500m, memory: 4659Mi}`,
	suspend: suspendField(), state: at("status", "applicationState", "state"),
	running: "RUNNING", succeeded: "COMPLETED", failed: "FAILED",
}

func rayClusterSpec() string {
	group := func(requests string) string {
		return fmt.Sprintf("{spec: {containers: [{name: ray, image: ray, resources: %s}]}}", requests)
	}
	return `{headGroupSpec: {rayStartParams: {}, template: ` + group(`{requests: {cpu: 500m, memory: 1Gi}}`) + `},
    workerGroupSpecs: [{groupName: small, replicas: 2, minReplicas: 1, maxReplicas: 5, rayStartParams: {}, template: ` + group(`{requests: {cpu: 100m, memory: 512Mi}}`) + `}]}`
}

var rayJob = specimen{
	kind: "RayJob", resource: lab.RayJobs, extension: "rayjob",
	manifest: func(j job) string {
		return fmt.Sprintf(`apiVersion: ray.io/v1
kind: RayJob
metadata: {name: %s, annotations: %s}
spec:
  suspend: true
  shutdownAfterJobFinishes: true
  backoffLimit: 0
  entrypoint: python main.py
  rayClusterSpec: %s
`, j.name, j.annotations(), rayClusterSpec())
	},
	// Workers wait in an init container of 200m, and there is a pod that submits.
	total:   `{cpu: 1400m, memory: 2248Mi}`,
	suspend: suspendField(), state: at("status", "jobDeploymentStatus"),
	running: "Running", succeeded: "Complete", failed: "Failed",
	jobs: 1, // the one that submits
}

var rayCluster = specimen{
	kind: "RayCluster", resource: lab.RayClusters, extension: "raycluster",
	manifest: func(j job) string {
		return fmt.Sprintf("apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: %s, annotations: {scheduling.x-k8s.io/suspend: \"true\"}}\nspec: %s\n", j.name, rayClusterSpec())
	},
	total:   `{cpu: 900m, memory: 2Gi}`,
	suspend: suspendField(), state: at("status", "state"),
	running: "ready",
}

var workflow = specimen{
	kind: "Workflow", resource: lab.Workflows, extension: "workflow",
	manifest: func(j job) string {
		return fmt.Sprintf(`apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: %s, annotations: {kube-queue/min-resources: "{cpu: 1, memory: 1G}"}}
spec:
  suspend: true
  entrypoint: main
  templates:
  - name: kube-queue-suspend
    suspend: {}
  - name: main
    metadata: {annotations: %s}
    container: {image: busybox, command: [sleep], resources: {requests: {cpu: "1", memory: 1G}}}
`, j.name, j.annotations())
	},
	total:   `{cpu: "1", memory: 1G}`,
	suspend: suspendField(), state: at("status", "phase"),
	running: "Running", succeeded: "Succeeded", failed: "Failed",
}
