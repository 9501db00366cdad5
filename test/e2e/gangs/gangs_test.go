package gangs

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/gangs"
	"kube-queue.dev/kube-queue/test/harness"
)

// hundred returns how many gangs there are: fewer in make test.
func hundred() int {
	if testing.Short() {
		return 30
	}
	return 100
}

// sizes are the numbers of pods with a GPU in every ten gangs.
var sizes = []int{1, 4, 2, 16, 1, 3, 8, 2, 6, 4}

// gang is a job whose pods with a GPU must all run at the same time.
type gang struct {
	kind, name string
	pods       int
	// native asks kube-scheduler to place all pods of a Job or none.
	native bool
	// runs is how long pods run that end by themselves; 0 means 4 s. limit is how long the job may run; 0 means no
	// limit.
	runs, limit time.Duration
	// apart gives the pods a node selector that matches only nodes for this gang.
	apart bool
}

// mixed returns the hundred gangs and the number of their pods. Most are Jobs.
func mixed() (gangs []gang, pods int) {
	for i := range hundred() {
		g := gang{kind: "Job", name: fmt.Sprintf("gang-%d", i), pods: sizes[i%len(sizes)], native: native}
		switch {
		case i%25 == 6:
			g.kind = "RayJob"
		case i%11 == 3:
			g.kind = "PyTorchJob"
		case i%16 == 12:
			g.kind = "JobSet"
		}
		gangs, pods = append(gangs, g), pods+g.pods
	}
	return gangs, pods
}

// with returns changed copies of the gangs.
func with(gangs []gang, change func(*gang)) []gang {
	for i := range gangs {
		change(&gangs[i])
	}
	return gangs
}

// selector selects the pods of the gang that have a GPU.
func (g gang) selector() string { return "gang=" + g.name }

func (g gang) checked(namespace string) gangs.Gang {
	return gangs.Gang{Name: g.name, Namespace: namespace, Selector: g.selector(), Pods: g.pods}
}

// create creates the job.
func (g gang) create(ctx context.Context, l *harness.Env) error {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(g.manifest()), &object.Object); err != nil {
		return fmt.Errorf("the manifest of %s: %w", g.name, err)
	}
	_, err := l.Dynamic.Resource(resources[g.kind]).Namespace(l.Namespace).Create(ctx, object, metav1.CreateOptions{})
	return err
}

var resources = map[string]schema.GroupVersionResource{
	"Job": harness.Jobs, "PyTorchJob": harness.PyTorchJobs, "RayJob": harness.RayJobs,
	"JobSet": {Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"},
}

// ends returns the object whose run time ends the gang, or no name if its pods end by themselves.
func (g gang) ends() (resource schema.GroupVersionResource, name string) {
	switch g.kind {
	case "PyTorchJob":
		return harness.Pods, g.name + "-master-0"
	case "RayJob":
		return harness.RayJobs, g.name
	}
	return schema.GroupVersionResource{}, ""
}

// template returns the pod template, with a container of this name.
func (g gang) template(container string, ends bool) string {
	metadata, spec := "labels: {gang: "+g.name+"}", ""
	if ends {
		metadata += fmt.Sprintf(", annotations: {%s: %v}", harness.RunTime, cmp.Or(g.runs, 4*time.Second))
		spec = "restartPolicy: Never, "
	}
	if g.apart {
		spec += "nodeSelector: {gang: " + g.name + "}, "
	}
	return fmt.Sprintf(`{metadata: {%s}, spec: {%scontainers: [
    {name: %s, image: train, resources: {requests: {cpu: 100m, nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 1}}}]}}`, metadata, spec, container)
}

// manifest returns the job.
func (g gang) manifest() string {
	limit := ""
	if g.limit > 0 {
		limit = fmt.Sprintf(", %s: %q", wellknown.MaxExecTimeAnnotation, fmt.Sprint(g.limit.Seconds()))
	}
	text := fmt.Sprintf("---\nkind: %s\nmetadata: {name: %s, annotations: {scheduling.x-k8s.io/suspend: \"true\", %s: %v%s}}\n",
		g.kind, g.name, harness.RunTime, harness.UntilFinished, limit) // the run time is for RayJobs
	switch g.kind {
	case "PyTorchJob":
		return text + "apiVersion: kubeflow.org/v1\nspec:\n  pytorchReplicaSpecs:\n" + g.parts(func(part string, pods int) string {
			role := map[string]string{first: "Master", others: "Worker"}[part]
			return fmt.Sprintf("    %s: {replicas: %d, restartPolicy: OnFailure, template: %s}\n", role, pods, g.template("pytorch", false))
		})
	case "RayJob":
		return text + "apiVersion: ray.io/v1\nspec:\n  entrypoint: python train.py\n  shutdownAfterJobFinishes: true\n" +
			"  rayClusterSpec:\n    rayVersion: 2.52.0\n" + g.parts(func(part string, pods int) string {
			if part == first {
				return "    headGroupSpec: {rayStartParams: {}, template: " + g.template("ray-head", false) + "}\n"
			}
			return fmt.Sprintf("    workerGroupSpecs: [{groupName: workers, replicas: %d, minReplicas: %[1]d, maxReplicas: %[1]d, rayStartParams: {}, template: %s}]\n",
				pods, g.template("ray-worker", false))
		})
	case "JobSet":
		return text + "apiVersion: jobset.x-k8s.io/v1alpha2\nspec:\n  replicatedJobs:\n" + g.parts(func(part string, pods int) string {
			return fmt.Sprintf("  - {name: %s, template: {spec: {parallelism: %d, completions: %[2]d, backoffLimit: 0, template: %s}}}\n", part, pods, g.template("main", true))
		})
	}
	scheduling := ""
	if g.native {
		scheduling = "  scheduling: {schedulingPolicy: {gang: {}}}\n"
	}
	return text + fmt.Sprintf("apiVersion: batch/v1\nspec:\n  parallelism: %d\n  completions: %[1]d\n  backoffLimit: 0\n%s  template: %s\n",
		g.pods, scheduling, g.template("main", true))
}

// first and others are the parts of a gang of a kind with several parts.
const first, others = "first", "others"

func (g gang) parts(part func(name string, pods int) string) string {
	if g.pods == 1 {
		return part(first, 1)
	}
	return part(first, 1) + part(others, g.pods-1)
}
