package spark

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubeflow/spark-operator/v2/api/v1beta2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// Roles of pods; they are part of the names of settings and fields.
const (
	driverRole   = "driver"
	executorRole = "executor"
)

// role describes the driver or the executors of an application.
type role struct {
	name              string
	pods              *v1beta2.SparkPodSpec
	priorityClassName *string
	// containers are the names that the webhook finds Spark's container by. The last is the name that the operator
	// passes to Spark.
	containers []string
}

func driver(spec *v1beta2.SparkApplicationSpec) role {
	return role{
		name: driverRole, pods: &spec.Driver.SparkPodSpec, priorityClassName: spec.Driver.PriorityClassName,
		containers: []string{"spark-kubernetes-driver"},
	}
}

func executor(spec *v1beta2.SparkApplicationSpec) role {
	return role{
		name: executorRole, pods: &spec.Executor.SparkPodSpec, priorityClassName: spec.Executor.PriorityClassName,
		containers: []string{"executor", "spark-kubernetes-executor"},
	}
}

// template returns the pod template of the role: Spark completes the template of the
// owner, and the operator's webhook adds the rest.
func (r role) template(c conf, language language) (*corev1.PodTemplateSpec, error) {
	template := &corev1.PodTemplateSpec{}
	if r.pods.Template != nil {
		template = r.pods.Template.DeepCopy()
	}
	if err := r.fill(&template.Spec, c, language); err != nil {
		return nil, err
	}
	if err := r.mutate(&template.Spec); err != nil {
		return nil, err
	}
	return template, nil
}

// fill changes the pod like Spark: it overwrites the resources of the container with Spark's name, or of the first
// container, and adds to the node selector. It does not change other containers.
func (r role) fill(pod *corev1.PodSpec, c conf, language language) error {
	cpu, err := r.cpu(c)
	if err != nil {
		return err
	}
	cpuLimit, err := c.quantity("spark.kubernetes." + r.name + ".limit.cores")
	if err != nil {
		return err
	}
	memory, err := r.memory(c, language)
	if err != nil {
		return err
	}
	devices, err := c.devices(r.name)
	if err != nil {
		return err
	}
	spark := corev1.Container{Name: r.containers[len(r.containers)-1]}
	if len(pod.Containers) > 0 {
		at := max(0, slices.IndexFunc(pod.Containers, named(spark.Name)))
		spark = pod.Containers[at]
		pod.Containers = slices.Delete(pod.Containers, at, at+1)
	}
	set(&spark.Resources.Requests, corev1.ResourceCPU, cpu)
	set(&spark.Resources.Requests, corev1.ResourceMemory, memory)
	set(&spark.Resources.Limits, corev1.ResourceMemory, memory)
	if cpuLimit != nil {
		set(&spark.Resources.Limits, corev1.ResourceCPU, *cpuLimit)
	}
	for name, amount := range devices {
		set(&spark.Resources.Limits, name, amount)
	}
	pod.Containers = append(pod.Containers, spark)
	for _, prefix := range []string{nodeSelectorKey, "spark.kubernetes." + r.name + ".node.selector."} {
		for key, value := range c {
			if label, is := strings.CutPrefix(key, prefix); is {
				selectNodes(pod, label, value.text)
			}
		}
	}
	return nil
}

func selectNodes(pod *corev1.PodSpec, label, value string) {
	if pod.NodeSelector == nil {
		pod.NodeSelector = map[string]string{}
	}
	pod.NodeSelector[label] = value
}

func (r role) cpu(c conf) (resource.Quantity, error) {
	cores, err := c.whole("spark."+r.name+".cores", 1, 1)
	if err != nil {
		return resource.Quantity{}, err
	}
	request, err := c.quantity("spark.kubernetes." + r.name + ".request.cores")
	if err != nil || request != nil {
		return ptr.Deref(request, resource.Quantity{}), err
	}
	return *resource.NewQuantity(int64(cores), resource.DecimalSI), nil
}

// mutate changes the pod like the operator's webhook. It does not add a container whose name already exists.
func (r role) mutate(pod *corev1.PodSpec) error {
	for _, container := range r.pods.InitContainers {
		if !slices.ContainsFunc(pod.InitContainers, named(container.Name)) {
			pod.InitContainers = append(pod.InitContainers, container)
		}
	}
	for _, container := range r.pods.Sidecars {
		if !slices.ContainsFunc(pod.Containers, named(container.Name)) {
			pod.Containers = append(pod.Containers, container)
		}
	}
	if class := ptr.Deref(r.priorityClassName, ""); class != "" {
		pod.PriorityClassName = class
	}
	if r.pods.Affinity != nil {
		pod.Affinity = r.pods.Affinity
	}
	for label, value := range r.pods.NodeSelector {
		selectNodes(pod, label, value)
	}
	// If no container has one of the names, the webhook uses the first.
	spark := &pod.Containers[max(0, slices.IndexFunc(pod.Containers, named(r.containers...)))]
	if text := r.pods.MemoryLimit; text != nil {
		limit, err := memoryLimit(*text)
		if err != nil {
			return fmt.Errorf("spec.%s.memoryLimit: %w", r.name, err)
		}
		set(&spark.Resources.Limits, corev1.ResourceMemory, limit)
	}
	if gpu := r.pods.GPU; gpu != nil && gpu.Quantity < 0 {
		return fmt.Errorf("spec.%s.gpu.quantity must be 1 or more, not %d", r.name, gpu.Quantity)
	} else if gpu != nil && gpu.Name != "" && gpu.Quantity > 0 {
		set(&spark.Resources.Limits, corev1.ResourceName(gpu.Name), *resource.NewQuantity(gpu.Quantity, resource.DecimalSI))
	}
	return nil
}

func named(names ...string) func(corev1.Container) bool {
	return func(container corev1.Container) bool { return slices.Contains(names, container.Name) }
}

func set(list *corev1.ResourceList, name corev1.ResourceName, amount resource.Quantity) {
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	(*list)[name] = amount
}
