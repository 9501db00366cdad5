package provisioning

import (
	"cmp"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/pkg/requests"
)

// noImage replaces an image that is not set, because a PodTemplate must have one.
const noImage = "unset"

// scheduled returns the part of a template that a scheduler reads, as the API server creates the pods. Nothing else of
// the job is copied: commands and environments may contain secrets, and two pod sets that differ only there need the
// same nodes.
func scheduled(template *corev1.PodTemplateSpec, namespace string, cluster requests.Cluster) (*corev1.PodTemplateSpec, error) {
	spec, err := requests.Created(template, namespace, cluster)
	if err != nil {
		return nil, err
	}
	return &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: template.Labels},
		Spec: corev1.PodSpec{
			InitContainers:            containers(spec, spec.InitContainers, "init-"),
			Containers:                containers(spec, spec.Containers, ""),
			Volumes:                   volumes(spec.Volumes),
			NodeSelector:              spec.NodeSelector,
			Affinity:                  spec.Affinity,
			Tolerations:               spec.Tolerations,
			TopologySpreadConstraints: spec.TopologySpreadConstraints,
			SchedulerName:             spec.SchedulerName,
			PriorityClassName:         spec.PriorityClassName,
			PreemptionPolicy:          spec.PreemptionPolicy,
			RuntimeClassName:          spec.RuntimeClassName,
			Overhead:                  spec.Overhead,
			Resources:                 spec.Resources,
			ResourceClaims:            spec.ResourceClaims,
			HostNetwork:               spec.HostNetwork,
		},
	}, nil
}

// containers returns the parts of containers that a scheduler reads. Containers that webhooks add get a name.
func containers(spec *corev1.PodSpec, all []corev1.Container, prefix string) []corev1.Container {
	var kept []corev1.Container
	for i, c := range all {
		kept = append(kept, corev1.Container{
			Name: cmp.Or(c.Name, prefix+"container-"+strconv.Itoa(i)), Image: cmp.Or(c.Image, noImage),
			Resources: c.Resources, RestartPolicy: c.RestartPolicy, Ports: hostPorts(spec, c.Ports),
		})
	}
	return kept
}

// hostPorts returns the ports that only one pod of a node can have.
func hostPorts(spec *corev1.PodSpec, ports []corev1.ContainerPort) []corev1.ContainerPort {
	var kept []corev1.ContainerPort
	for _, port := range ports {
		if port.HostPort != 0 || spec.HostNetwork {
			kept = append(kept, port)
		}
	}
	return kept
}

// volumes returns the volumes that restrict the nodes of a pod.
func volumes(all []corev1.Volume) []corev1.Volume {
	var kept []corev1.Volume
	for _, v := range all {
		if v.PersistentVolumeClaim != nil || v.Ephemeral != nil || v.CSI != nil {
			kept = append(kept, v)
		}
	}
	return kept
}
