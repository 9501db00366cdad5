package requests

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

// named sets the required fields of containers, except the resources.
func named(spec *corev1.PodSpec) {
	for i, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for j := range containers {
			containers[j].Name, containers[j].Image = fmt.Sprintf("c-%d-%d", i, j), "none"
		}
	}
}

// drawSpec draws a pod spec, which is usually valid.
func drawSpec(t *rapid.T) corev1.PodSpec {
	var spec corev1.PodSpec
	for range rapid.IntRange(1, 3).Draw(t, "containers") {
		spec.Containers = append(spec.Containers, corev1.Container{Resources: drawResources(t, true)})
	}
	for range rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3}).Draw(t, "init containers") {
		container := corev1.Container{Resources: drawResources(t, true)}
		if rapid.Bool().Draw(t, "sidecar") {
			container.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}
		spec.InitContainers = append(spec.InitContainers, container)
	}
	if rapid.IntRange(0, 2).Draw(t, "as a whole") == 0 {
		spec.Resources = ptr.To(drawResources(t, false))
	}
	spec.RuntimeClassName = rapid.SampledFrom([]*string{nil, nil, nil, ptr.To("plain"), ptr.To("sandbox"), ptr.To("gone")}).Draw(t, "class")
	if rapid.IntRange(0, 9).Draw(t, "own overhead") == 0 {
		spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
	}
	named(&spec)
	return spec
}

// drawResources draws small amounts for containers and large ones for pods. Resources that cannot
// be overcommitted have only limits.
func drawResources(t *rapid.T, container bool) corev1.ResourceRequirements {
	cpu, memory := []string{"", "", "0", "10100u", "250m", "0.5", "1"}, []string{"", "", "256Mi", "0.5Gi", "1Gi"}
	cpuLimit, memoryLimit := []string{"", "", "1", "2", "2500m"}, []string{"", "", "1Gi", "2Gi", "2500M"}
	if !container {
		cpu, memory = []string{"", "1", "4"}, []string{"", "1Gi", "4Gi"}
		cpuLimit, memoryLimit = []string{"", "2", "8"}, []string{"", "2Gi", "8Gi"}
	}
	requirements := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	draw(t, requirements.Requests, corev1.ResourceCPU, cpu)
	draw(t, requirements.Requests, corev1.ResourceMemory, memory)
	draw(t, requirements.Limits, corev1.ResourceCPU, cpuLimit)
	draw(t, requirements.Limits, corev1.ResourceMemory, memoryLimit)
	if container {
		draw(t, requirements.Requests, corev1.ResourceEphemeralStorage, []string{"", "", "1Gi"})
		draw(t, requirements.Limits, "example.com/gpu", []string{"", "", "1", "2"})
	}
	return requirements
}

func draw(t *rapid.T, list corev1.ResourceList, name corev1.ResourceName, texts []string) {
	if text := rapid.SampledFrom(texts).Draw(t, string(name)); text != "" {
		list[name] = resource.MustParse(text)
	}
}

// fixedDraws is how many pods each test draws with fixed seeds, so that the cases it must cover do not depend on
// chance.
const fixedDraws = 40

// drawWeighed draws a pod with properties that scopes of ResourceQuotas match.
func drawWeighed(t *rapid.T) corev1.PodSpec {
	spec := drawSpec(t)
	spec.ActiveDeadlineSeconds = rapid.SampledFrom([]*int64{nil, nil, ptr.To[int64](60)}).Draw(t, "deadline")
	if rapid.Bool().Draw(t, "bare") {
		for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for i := range containers {
				containers[i].Resources = rapid.SampledFrom([]corev1.ResourceRequirements{
					{}, {Limits: corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}},
					{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0"), corev1.ResourceMemory: resource.MustParse("0")}},
				}).Draw(t, "resources")
			}
		}
	}
	if rapid.Bool().Draw(t, "with affinity") {
		spec.Affinity = &corev1.Affinity{
			PodAffinity:     &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: drawTerms(t), PreferredDuringSchedulingIgnoredDuringExecution: drawPreferred(t)},
			PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: drawTerms(t), PreferredDuringSchedulingIgnoredDuringExecution: drawPreferred(t)},
		}
	}
	return spec
}

// drawTerms draws affinity terms, few of them for other namespaces.
func drawTerms(t *rapid.T) []corev1.PodAffinityTerm {
	var terms []corev1.PodAffinityTerm
	for range rapid.IntRange(0, 2).Draw(t, "terms") {
		term := corev1.PodAffinityTerm{TopologyKey: "zone"}
		switch rapid.IntRange(0, 9).Draw(t, "term") {
		case 0:
			term.Namespaces = []string{"other"}
		case 1:
			term.NamespaceSelector = &metav1.LabelSelector{}
		}
		terms = append(terms, term)
	}
	return terms
}

func drawPreferred(t *rapid.T) []corev1.WeightedPodAffinityTerm {
	var preferred []corev1.WeightedPodAffinityTerm
	for _, term := range drawTerms(t) {
		preferred = append(preferred, corev1.WeightedPodAffinityTerm{Weight: 1, PodAffinityTerm: term})
	}
	return preferred
}
