package framework

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/labels"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1"
)

// PriorityClasses answers what a PriorityClass is worth.
type PriorityClasses interface {
	// Value of the class with the name.
	Value(name string) (value int32, found bool)
	// Default is the global default class; found is false when there is none.
	Default() (name string, value int32, found bool)
}

// priorityOf finds a job's priority and the class that it came from. The sources
// in order: the priority annotation, the class key, the job's own scheduling
// policy, the first of its pods that name a class, the global default, 0.
func priorityOf(job Object, pods Pods, classes PriorityClasses) (int32, string, error) {
	if text, there := job.GetAnnotations()[PriorityAnnotation]; there {
		value, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return 0, "", fmt.Errorf("annotation %s must be a whole number from -2147483648 to 2147483647, not %q", PriorityAnnotation, text)
		}
		return int32(value), "", nil
	}
	name := className(job, pods)
	if name == "" {
		name, value, _ := classes.Default()
		return value, name, nil
	}
	value, found := classes.Value(name)
	if !found {
		return 0, "", fmt.Errorf("there is no PriorityClass %q", name)
	}
	return value, name, nil
}

// podClass is the class that the API server gives pods of the template.
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

// className is the class that the job names, if any.
func className(job Object, pods Pods) string {
	for _, name := range []string{job.GetLabels()[PriorityClassKey], job.GetAnnotations()[PriorityClassKey], pods.PriorityClassName} {
		if name != "" {
			return name
		}
	}
	for _, set := range pods.Sets {
		if set.Template != nil && set.Template.Spec.PriorityClassName != "" {
			return set.Template.Spec.PriorityClassName
		}
	}
	return ""
}

// listedClasses reads classes from an informer.
type listedClasses struct {
	lister schedulinglisters.PriorityClassLister
}

func (c listedClasses) Value(name string) (int32, bool) {
	class, err := c.lister.Get(name)
	if err != nil {
		return 0, false
	}
	return class.Value, true
}

// Default is the class of the least value among those that claim to be the
// default, as the API server has it.
func (c listedClasses) Default() (string, int32, bool) {
	classes, err := c.lister.List(labels.Everything())
	if err != nil {
		return "", 0, false
	}
	var least *schedulingv1.PriorityClass
	for _, class := range classes {
		if class.GlobalDefault && (least == nil || class.Value < least.Value || class.Value == least.Value && class.Name < least.Name) {
			least = class
		}
	}
	if least == nil {
		return "", 0, false
	}
	return least.Name, least.Value, true
}
