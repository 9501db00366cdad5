package gangs

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/test/gangs"
	"kube-queue.dev/kube-queue/test/harness"
)

// hundred is how many gangs there are.
const hundred = 100

// sizes are the numbers of pods with a GPU in each ten gangs.
var sizes = []int{1, 4, 2, 16, 1, 3, 8, 2, 6, 4}

// gang is a job, all of whose pods with a GPU have to run at the same time.
type gang struct {
	kind, name string
	pods       int
	// native asks kube-scheduler to place all pods of a Job or none.
	native bool
	// apart gives the pods a node selector that only nodes for this gang have.
	apart bool
}

// mixed returns the hundred gangs and the number of their pods. Most are Jobs.
func mixed() (gangs []gang, pods int) {
	for i := range hundred {
		g := gang{kind: "Job", name: fmt.Sprintf("gang-%d", i), pods: sizes[i%len(sizes)], native: *native}
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

// with returns the gangs changed.
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

// ends returns the object that ends the gang when it gets a run time, or no name if its pods end by
// themselves.
func (g gang) ends() (resource schema.GroupVersionResource, name string) {
	switch g.kind {
	case "PyTorchJob":
		return harness.Pods, g.name + "-master-0"
	case "RayJob":
		return harness.RayJobs, g.name
	}
	return schema.GroupVersionResource{}, ""
}

// template returns the pod template with a container of this name.
func (g gang) template(container, more string) string {
	selector := ""
	if g.apart {
		selector = "nodeSelector: {gang: " + g.name + "}, "
	}
	return fmt.Sprintf(`{metadata: {labels: {gang: %s}%s}, spec: {%srestartPolicy: Never, containers: [
    {name: %s, image: train, resources: {requests: {cpu: 100m, nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 1}}}]}}`, g.name, more, selector, container)
}

// shortly is the run time of pods that end by themselves.
const shortly = `, annotations: {` + harness.RunTime + `: 2s}`

// manifest returns the job.
func (g gang) manifest() string {
	header := "---\napiVersion: %s\nkind: " + g.kind + "\nmetadata: {name: " + g.name + ", annotations: {scheduling.x-k8s.io/suspend: \"true\"%s}}\n"
	switch g.kind {
	case "PyTorchJob":
		replicas := func(role string, n int) string {
			return fmt.Sprintf("    %s:\n      replicas: %d\n      restartPolicy: OnFailure\n      template: %s\n", role, n, strings.Replace(g.template("pytorch", ""), "restartPolicy: Never, ", "", 1))
		}
		text := fmt.Sprintf(header, "kubeflow.org/v1", "") + "spec:\n  pytorchReplicaSpecs:\n" + replicas("Master", 1)
		if g.pods > 1 {
			text += replicas("Worker", g.pods-1)
		}
		return text
	case "RayJob":
		ray := func(container string) string {
			return strings.Replace(g.template(container, ""), "restartPolicy: Never, ", "", 1)
		}
		text := fmt.Sprintf(header, "ray.io/v1", ", "+harness.RunTime+": "+harness.UntilFinished.String()) + `spec:
  entrypoint: python train.py
  shutdownAfterJobFinishes: true
  rayClusterSpec:
    rayVersion: 2.52.0
    headGroupSpec: {rayStartParams: {}, template: ` + ray("ray-head") + "}\n"
		if g.pods > 1 {
			text += fmt.Sprintf("    workerGroupSpecs:\n    - {groupName: workers, replicas: %d, minReplicas: %[1]d, maxReplicas: %[1]d, rayStartParams: {}, template: %s}\n",
				g.pods-1, ray("ray-worker"))
		}
		return text
	case "JobSet":
		replicated := func(name string, n int) string {
			return fmt.Sprintf("  - {name: %s, template: {spec: {parallelism: %d, completions: %[2]d, backoffLimit: 0, template: %s}}}\n", name, n, g.template("main", shortly))
		}
		text := fmt.Sprintf(header, "jobset.x-k8s.io/v1alpha2", "") + "spec:\n  replicatedJobs:\n" + replicated("leader", 1)
		if g.pods > 1 {
			text += replicated("worker", g.pods-1)
		}
		return text
	}
	scheduling := ""
	if g.native {
		scheduling = "  scheduling: {schedulingPolicy: {gang: {}}}\n"
	}
	return fmt.Sprintf(header+"spec:\n  parallelism: %d\n  completions: %[3]d\n  backoffLimit: 0\n%s  template: %s\n", "batch/v1", "", g.pods, scheduling, g.template("main", shortly))
}
