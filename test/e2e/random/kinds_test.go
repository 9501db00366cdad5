package random

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/e2e/random/oracle"
	"kube-queue.dev/kube-queue/test/e2e/random/plan"
	"kube-queue.dev/kube-queue/test/harness"
)

// kind is a kind of jobs and how it is changed.
type kind struct {
	plan.Kind
	// extension is its name in --enabled-extensions.
	extension string
	resource  schema.GroupVersionResource
	// suspend is the path of the suspend field.
	suspend []string
	// workers is the JSON pointer to the number of workers, or empty if there is none.
	workers string
	spec    func(drawn) string
	// annotations are the annotations of the job in addition to the mark. It may be nil.
	annotations func(drawn) map[string]string
	// scale sets the number of workers after the release. If it is nil, workers is used.
	scale func(*run, drawn, int) error
}

// drawn is a job of the plan.
type drawn struct{ plan.Job }

func (d drawn) name() string { return fmt.Sprintf("job-%03d", d.Number) }

// jobOf returns the name of the drawn job with this name, or of the one that created the object with this name.
func jobOf(name string) string {
	words := strings.SplitN(name, "-", 3)
	return strings.Join(words[:min(len(words), 2)], "-")
}

// meta returns the metadata of pods that the test ends.
func (d drawn) meta() string {
	code := 0
	if d.Fails {
		code = 1
	}
	return fmt.Sprintf("{labels: {%s: %s}, annotations: {%s: %q, %s: %q}}",
		oracle.JobLabel, d.name(), harness.RunTime, harness.UntilFinished, harness.ExitCode, fmt.Sprint(code))
}

// containers returns the containers of each pod.
func (d drawn) containers(name string) string {
	return fmt.Sprintf("containers: [{name: %s, image: busybox, resources: {requests: {cpu: %dm, memory: %dMi}}}]", name, d.MilliCPU, d.MebiByte)
}

// template returns a pod template.
func (d drawn) template(container string) string {
	return fmt.Sprintf("{metadata: %s, spec: {restartPolicy: Never, %s}}", d.meta(), d.containers(container))
}

// rayTemplate returns a template without a restart policy, which KubeRay sets.
func (d drawn) rayTemplate() string {
	return fmt.Sprintf("{metadata: {labels: {%s: %s}}, spec: {%s}}", oracle.JobLabel, d.name(), d.containers("ray"))
}

func (d drawn) rayCluster() string {
	return fmt.Sprintf(`headGroupSpec: {rayStartParams: {}, template: %s}
  workerGroupSpecs: [{groupName: small, replicas: %d, minReplicas: 1, maxReplicas: 9, rayStartParams: {}, template: %s}]`,
		d.rayTemplate(), d.Workers, d.rayTemplate())
}

func (d drawn) runTimes() map[string]string {
	return map[string]string{harness.RunTime: harness.UntilFinished.String()}
}

// kubeflow returns a kind of training-operator with a pod of the first role, unless it is empty, and
// workers.
func kubeflow(name, extension, replicas, container, first string) kind {
	return kind{
		Kind: plan.Kind{Name: name}, extension: extension,
		resource: schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: strings.ToLower(name) + "s"},
		suspend:  []string{"spec", "runPolicy", "suspend"}, workers: "/spec/" + replicas + "/Worker/replicas",
		spec: func(d drawn) string {
			roles := ""
			if first != "" {
				roles = fmt.Sprintf("%s: {replicas: 1, restartPolicy: Never, template: %s}, ", first, d.template(container))
			}
			return fmt.Sprintf("  %s: {%sWorker: {replicas: %d, restartPolicy: Never, template: %s}}\n", replicas, roles, d.Workers, d.template(container))
		},
	}
}

var (
	suspendField = []string{"spec", "suspend"}
	jobSets      = schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"}
)

// pods returns the kind of plain pods, or of groups of pods. Only the test deletes them, because nothing creates a pod
// again that an attack has deleted.
func pods(name string) kind {
	return kind{
		Kind: plan.Kind{Name: name, Endless: true, Unstoppable: true, Gated: true}, extension: "pod", resource: harness.Pods, suspend: suspendField,
		spec:  func(d drawn) string { return "  restartPolicy: Never\n  " + d.containers("main") + "\n" },
		scale: (*run).replacePod,
		annotations: func(d drawn) map[string]string {
			all := d.runTimes()
			if d.Kind == podGroup {
				all[wellknown.PodGroupSizeAnnotation] = fmt.Sprint(d.Workers)
			}
			return all
		},
	}
}

const podGroup = "PodGroup"

// kinds returns all kinds of the test.
func kinds() []kind {
	return []kind{
		pods("Pod"),
		pods(podGroup),
		{
			Kind: plan.Kind{Name: "Job"}, extension: "job", resource: harness.Jobs, suspend: suspendField, workers: "/spec/parallelism",
			spec: func(d drawn) string { return "  " + d.batchJob() + "\n" },
		},
		kubeflow("PyTorchJob", "pytorchjob", "pytorchReplicaSpecs", "pytorch", "Master"),
		kubeflow("TFJob", "tfjob", "tfReplicaSpecs", "tensorflow", "PS"),
		kubeflow("MPIJob", "mpiv1", "mpiReplicaSpecs", "mpi", "Launcher"),
		kubeflow("XGBoostJob", "xgboostjob", "xgbReplicaSpecs", "xgboost", "Master"),
		kubeflow("PaddleJob", "paddlejob", "paddleReplicaSpecs", "paddle", "Master"),
		kubeflow("JAXJob", "jaxjob", "jaxReplicaSpecs", "jax", ""),
		{
			Kind: plan.Kind{Name: "RayCluster", Endless: true}, extension: "raycluster", resource: harness.RayClusters,
			suspend: suspendField, workers: rayWorkers,
			spec: func(d drawn) string { return "  " + d.rayCluster() + "\n" },
		},
		{
			Kind: plan.Kind{Name: "RayJob", Parts: true}, extension: "rayjob", resource: harness.RayJobs, suspend: suspendField,
			workers: "/spec/rayClusterSpec/workerGroupSpecs/0/replicas", annotations: drawn.runTimes, scale: (*run).scaleRayJob,
			spec: func(d drawn) string {
				return fmt.Sprintf("  shutdownAfterJobFinishes: true\n  backoffLimit: 0\n  entrypoint: python main.py\n"+
					"  submitterPodTemplate: {metadata: {labels: {%s: %s}}, spec: {restartPolicy: Never, %s}}\n  rayClusterSpec:\n    %s\n",
					oracle.JobLabel, d.name(), d.containers("submitter"), strings.ReplaceAll(d.rayCluster(), "\n", "\n  "))
			},
		},
		{
			Kind: plan.Kind{Name: "SparkApplication"}, extension: "sparkapp", resource: harness.SparkApplications, suspend: suspendField,
			workers: "/spec/executor/instances", scale: (*run).scaleSparkApplication,
			spec: func(d drawn) string {
				pod := fmt.Sprintf("cores: 1, coreRequest: %dm, memory: 512m, labels: {%s: %s}", d.MilliCPU, oracle.JobLabel, d.name())
				return fmt.Sprintf(`  type: Scala
  mode: cluster
  image: spark
  mainClass: main
  mainApplicationFile: local:///main.jar
  sparkVersion: 4.0.0
  restartPolicy: {type: Never}
  driver: {%s, serviceAccount: default, annotations: {%s: %q}}
  executor: {%s, instances: %d}
`, pod, harness.RunTime, harness.UntilFinished, pod, d.Workers)
			},
		},
		{
			Kind: plan.Kind{Name: "JobSet", Parts: true}, extension: "jobset", resource: jobSets, suspend: suspendField,
			workers: "/spec/replicatedJobs/1/template/spec/parallelism", scale: (*run).scaleJobSet,
			spec: func(d drawn) string {
				leader := drawn{d.Job}
				leader.Workers = 1
				return fmt.Sprintf(`  replicatedJobs:
  - {name: leader, replicas: 1, template: {spec: {%s}}}
  - {name: %s, replicas: 1, template: {spec: {%s}}}
`, strings.ReplaceAll(leader.batchJob(), "\n  ", ", "), jobSetWorkers, strings.ReplaceAll(d.batchJob(), "\n  ", ", "))
			},
		},
		{
			// It has one worker more than it declares.
			Kind: plan.Kind{Name: "Workflow", Unstoppable: true}, extension: "workflow", resource: harness.Workflows, suspend: suspendField,
			scale: (*run).scaleWorkflow,
			spec: func(d drawn) string {
				return fmt.Sprintf(`  entrypoint: main
  templates:
  - name: main
    steps: [[{name: work, template: work, withSequence: {count: "%d"}}]]
  - {name: work, metadata: %s, container: {image: busybox, command: [work], resources: {requests: {cpu: %dm, memory: %dMi}}}}
`, d.Workers+1, d.meta(), d.MilliCPU, d.MebiByte)
			},
			annotations: func(d drawn) map[string]string { return map[string]string{minResources: d.declared(d.Workers)} },
		},
	}
}

// batchJob returns the spec of a Job. Ended pods are replaced until as many have succeeded as a job may have workers,
// so the Job can be scaled.
func (d drawn) batchJob() string {
	return fmt.Sprintf("parallelism: %d\n  completions: %d\n  completionMode: NonIndexed\n  backoffLimit: 0\n  template: %s",
		d.Workers, plan.MaxWorkers, d.template("main"))
}

// manifest returns the job with the mark, or a pod of it, in YAML.
func (d drawn) manifest() string {
	k, labels := d.kind(), ""
	if k.Gated {
		labels = oracle.JobLabel + ": " + d.name()
	}
	if d.Kind == podGroup {
		labels += ", " + wellknown.PodGroupLabel + ": " + d.name()
	}
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s, labels: {%s}, annotations: {scheduling.x-k8s.io/suspend: \"true\"}}\nspec:\n%s",
		k.resource.GroupVersion(), strings.TrimSuffix(k.Name, "Group"), d.name(), labels, k.spec(d)) // a group is its pods
}

func (d drawn) kind() kind {
	for _, k := range kinds() {
		if k.Name == d.Kind {
			return k
		}
	}
	panic("unknown kind " + d.Kind)
}

const (
	rayWorkers    = "/spec/workerGroupSpecs/0/replicas"
	jobSetWorkers = "workers"
	minResources  = "kube-queue/min-resources"
)

// declared returns the size of a Workflow with these workers.
func (d drawn) declared(workers int) string {
	return fmt.Sprintf("{cpu: %dm, memory: %dMi}", int64(workers)*d.MilliCPU, int64(workers)*d.MebiByte)
}

// replacePod replaces a pod of a group.
func (r *run) replacePod(d drawn, _ int) error {
	old := r.record.Pods(r.namespace(d), d.name())
	if d.Kind != podGroup || len(old) < 2 {
		return nil
	}
	if err := r.objects(d).Delete(r.t.Context(), old[len(old)-1].Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return r.create(d, nil, fmt.Sprintf("%s-more-%d", d.name(), r.at))
}

// scaleRayJob does what the autoscaler of Ray does.
func (r *run) scaleRayJob(d drawn, workers int) error {
	list, err := r.dynamic().Resource(harness.RayClusters).Namespace(r.namespace(d)).
		List(r.t.Context(), metav1.ListOptions{LabelSelector: "ray.io/originated-from-cr-name=" + d.name()})
	if err != nil || len(list.Items) == 0 {
		return err
	}
	return r.replace(d, harness.RayClusters, list.Items[0].GetName(), rayWorkers, workers)
}

// scaleJobSet changes the Job of the workers, because the JobSet itself cannot be changed after its
// release.
func (r *run) scaleJobSet(d drawn, workers int) error {
	return r.replace(d, harness.Jobs, d.name()+"-"+jobSetWorkers+"-0", "/spec/parallelism", workers)
}

// scaleWorkflow changes the declared size, which matters only before the release.
func (r *run) scaleWorkflow(d drawn, workers int) error {
	return r.merge(d, map[string]any{"metadata": map[string]any{"annotations": map[string]any{minResources: d.declared(workers)}}})
}

// scaleSparkApplication creates an executor or deletes one, as the driver does with dynamic allocation.
func (r *run) scaleSparkApplication(d drawn, workers int) error {
	executors := r.record.Pods(r.namespace(d), d.name())
	kept := executors[:0]
	for _, p := range executors {
		if p.Labels["spark-role"] == "executor" {
			kept = append(kept, p)
		}
	}
	pods := r.places[d.Place].Kube.CoreV1().Pods(r.namespace(d))
	switch have := len(kept); {
	case have == 0 || have == workers:
		return nil
	case have > workers:
		return pods.Delete(r.t.Context(), kept[have-1].Name, metav1.DeleteOptions{})
	default:
		more := kept[0].DeepCopy()
		more.ObjectMeta = metav1.ObjectMeta{Name: fmt.Sprintf("%s-more-%d", d.name(), r.at), Labels: more.Labels,
			Annotations: more.Annotations, OwnerReferences: more.OwnerReferences}
		more.Spec.NodeName = ""
		_, err := pods.Create(r.t.Context(), more, metav1.CreateOptions{})
		return err
	}
}
