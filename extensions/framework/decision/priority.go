package decision

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
)

// priorityOf returns a job's priority and the class that it comes from. The sources
// in order: the priority annotation, the class key, the job's own scheduling policy,
// the first pod set that names a class, the global default, 0.
func priorityOf(job framework.Object, pods framework.Pods, classes PriorityClasses) (int32, string, error) {
	if text, there := job.GetAnnotations()[wellknown.PriorityAnnotation]; there {
		value, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return 0, "", fmt.Errorf("annotation %s must be an integer from -2147483648 to 2147483647, not %q", wellknown.PriorityAnnotation, text)
		}
		return int32(value), "", nil
	}
	name, source := className(job, pods)
	if name == "" {
		name, value, _ := classes.Default()
		return value, name, nil
	}
	value, found := classes.Value(name)
	if !found {
		return 0, "", fmt.Errorf("PriorityClass %q, which is named by %s, does not exist; name an existing PriorityClass there, or ask an administrator to create it", name, source)
	}
	return value, name, nil
}

// podClass returns the class that the API server sets in pods of the template.
func podClass(template *corev1.PodTemplateSpec, classes PriorityClasses) string {
	if template == nil {
		return ""
	}
	if name := template.Spec.PriorityClassName; name != "" {
		return name
	}
	name, _, _ := classes.Default()
	return name
}

// className returns the class that the job names, and the field that names it; both are empty if the job names none.
func className(job framework.Object, pods framework.Pods) (name, source string) {
	for _, from := range []struct{ name, source string }{
		{job.GetLabels()[wellknown.PriorityClassKey], "label " + wellknown.PriorityClassKey},
		{job.GetAnnotations()[wellknown.PriorityClassKey], "annotation " + wellknown.PriorityClassKey},
		{pods.PriorityClassName, pods.PriorityClassField},
	} {
		if from.name != "" {
			return from.name, from.source
		}
	}
	for _, set := range pods.Sets {
		if set.Template != nil && set.Template.Spec.PriorityClassName != "" {
			return set.Template.Spec.PriorityClassName, fmt.Sprintf("the pod template of pod set %q", set.Name)
		}
	}
	return "", ""
}
