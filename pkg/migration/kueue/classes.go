package kueue

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/migration"
)

// maxPriority is the largest value of a PriorityClass that users may create. Larger ones are for the system.
const maxPriority = 1_000_000_000

// convertClasses converts WorkloadPriorityClasses into PriorityClasses. Jobs name them by a label, so the priority of
// their pods does not change. If pods name one anyway, preemptionPolicy Never keeps them from evicting others.
func (c *converter) convertClasses() {
	var objects []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(c.classes)) {
		class := c.classes[name]
		why := ""
		if value, has := c.podClasses[name]; has && value == class.value {
			continue // jobs name the class that exists
		} else if has {
			why = fmt.Sprintf("a PriorityClass of this name exists with the value %d", value)
		} else if class.value > maxPriority {
			why = fmt.Sprintf("a PriorityClass has a value of at most %d", maxPriority)
		} else if strings.HasPrefix(name, "system-") {
			why = "the names of PriorityClasses must not begin with system-"
		}
		if why != "" {
			class.asAnnotation = true
			c.classes[name] = class
			c.result.Find("WorkloadPriorityClass "+name, "value", why, fmt.Sprintf("set the annotation %s: \"%d\" on the jobs of the class; those in the input get it", wellknown.PriorityAnnotation, class.value))
			continue
		}
		fields := map[string]any{"value": int64(class.value), "preemptionPolicy": "Never"}
		if class.description != "" {
			fields["description"] = class.description
		}
		objects = append(objects, migration.Object("scheduling.k8s.io/v1", "PriorityClass", "", name, fields))
	}
	c.before = append(objects, c.before...)
}
