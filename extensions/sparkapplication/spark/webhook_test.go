package spark

import (
	"github.com/kubeflow/spark-operator/v2/api/v1beta2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

// mutateAlike passes a pod that Spark creates to the operator's webhook and to our code.
func mutateAlike(t *rapid.T, operator *operator) {
	app := &v1beta2.SparkApplication{}
	who := rapid.SampledFrom([]func(*v1beta2.SparkApplicationSpec) role{driver, executor}).Draw(t, "role")(&app.Spec)
	drawWebhookFields(t, who.pods)
	if class := rapid.SampledFrom([]*string{nil, ptr.To(""), ptr.To("high")}).Draw(t, "class"); who.name == driverRole {
		app.Spec.Driver.PriorityClassName, who.priorityClassName = class, class
	} else {
		app.Spec.Executor.PriorityClassName, who.priorityClassName = class, class
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"spark-role": who.name}},
		Spec: corev1.PodSpec{
			Containers: drawContainers(t), InitContainers: drawContainers(t), Affinity: drawAffinity(t), NodeSelector: drawNodeSelector(t),
			PriorityClassName: rapid.SampledFrom([]string{"", "low"}).Draw(t, "class of the template"),
		},
	}
	spark := rapid.SampledFrom([]string{"mine", "executor", who.containers[len(who.containers)-1]}).Draw(t, "Spark's container")
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: spark})

	said, err := operator.ask(app, pod)
	if err != nil {
		t.Fatal(err)
	}
	got := pod.Spec.DeepCopy()
	switch err := who.mutate(got); {
	case (err != nil) != (said.Error != ""):
		t.Fatalf("we say %v, the operator %q", err, said.Error)
	case err != nil:
	case !equality.Semantic.DeepEqual(got.Containers, said.Pod.Spec.Containers),
		!equality.Semantic.DeepEqual(got.InitContainers, said.Pod.Spec.InitContainers),
		!equality.Semantic.DeepEqual(got.Affinity, said.Pod.Spec.Affinity),
		!equality.Semantic.DeepEqual(got.NodeSelector, said.Pod.Spec.NodeSelector),
		got.PriorityClassName != said.Pod.Spec.PriorityClassName:
		t.Fatalf("we make\n%v of it, the operator\n%v", got, said.Pod.Spec)
	}
}

func drawNodeSelector(t *rapid.T) map[string]string {
	return rapid.MapOfN(rapid.SampledFrom([]string{"model", "zone"}), rapid.SampledFrom([]string{"", "a", "b"}), 0, 2).Draw(t, "node selector")
}

func drawWebhookFields(t *rapid.T, pods *v1beta2.SparkPodSpec) {
	// Negative limits are not drawn, because the operator passes them on to Kubernetes.
	pods.MemoryLimit = rapid.Ptr(rapid.OneOf(
		rapid.StringMatching(`[0-9]{1,4}([kmgtpKMGTPE][bBi]?)?`),
		rapid.StringMatching(`[0-9.bkmgiKMG]{0,5}`),
	), true).Draw(t, "memory limit")
	pods.Affinity = drawAffinity(t)
	pods.NodeSelector = drawNodeSelector(t)
	pods.Sidecars, pods.InitContainers = drawContainers(t), drawContainers(t)
	pods.GPU = rapid.SampledFrom([]*v1beta2.GPUSpec{
		nil, {Name: "nvidia.com/gpu", Quantity: 2}, {Name: "", Quantity: 2}, {Name: "amd.com/gpu"},
	}).Draw(t, "GPU")
}

func drawAffinity(t *rapid.T) *corev1.Affinity {
	return rapid.SampledFrom([]*corev1.Affinity{
		nil, {}, {PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{Namespaces: []string{"other"}}}}},
	}).Draw(t, "affinity")
}

// drawContainers draws containers, some twice.
func drawContainers(t *rapid.T) []corev1.Container {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) corev1.Container {
		return corev1.Container{
			Name: rapid.SampledFrom([]string{"logs", "proxy", "executor"}).Draw(t, "container"),
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: *resource.NewQuantity(rapid.Int64Range(0, 9).Draw(t, "cores"), resource.DecimalSI),
			}},
		}
	}), 0, 3).Draw(t, "containers")
}
