package kueue

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/migration"
)

// Keys of Kueue on jobs.
const (
	queueLabel       = prefix + "queue-name"
	classLabel       = prefix + "priority-class"
	maxExecLabel     = prefix + "max-exec-time-seconds"
	minParallelism   = prefix + "job-min-parallelism"
	equalCompletions = prefix + "job-completions-equal-parallelism"
	topologyPrefix   = prefix + "podset-"
	groupLabel       = prefix + "pod-group-name"
	groupSize        = prefix + "pod-group-total-count"
	managedLabel     = prefix + "managed" // Kueue writes it
)

// templatePath is the path of the metadata for the Jobs of a CronJob.
var templatePath = []string{"spec", "jobTemplate", "metadata"}

// isJob reports whether the object, or the template of a CronJob, has the label of a queue.
func isJob(object *unstructured.Unstructured) bool {
	if object.GetLabels()[queueLabel] != "" {
		return true
	}
	labels, _, _ := unstructured.NestedStringMap(object.Object, append(slices.Clone(templatePath), "labels")...)
	return object.GetKind() == "CronJob" && labels[queueLabel] != ""
}

// convertJobs converts the manifests of jobs, ordered by kind and name.
func (c *converter) convertJobs() {
	for _, d := range c.jobs {
		if d.Object.GetUID() != "" {
			c.liveJobs++
			continue
		}
		job := migration.Applicable(d.Object)
		if job.GetKind() == "CronJob" {
			c.convertCronJob(d, job)
			continue
		}
		_, queued := migration.KindOfJob(d.Object)
		if !queued {
			c.result.Find(d.Name(), "metadata.labels: "+queueLabel, "objects of this kind are not queued", notQueued)
			continue
		}
		labels, annotations := c.convertKeys(d, job.GetNamespace(), job.GetLabels(), job.GetAnnotations())
		job.SetLabels(migration.OrNil(labels))
		job.SetAnnotations(migration.OrNil(annotations))
		c.convertSpec(d, job.Object)
		c.behind = append(c.behind, job)
		c.pods = c.pods || isPod(job)
	}
	if c.pods {
		c.result.Step("Add pod to the value enabledExtensions of the chart, without which plain pods are not queued.")
	}
}

func isPod(object *unstructured.Unstructured) bool { return object.GetKind() == "Pod" }

// convertCronJob converts the template of a CronJob, whose Jobs are queued one by one.
func (c *converter) convertCronJob(d migration.Document, job *unstructured.Unstructured) {
	own := job.GetLabels()
	metadata, _, err := unstructured.NestedMap(job.Object, templatePath...)
	if err == nil {
		err = migration.CheckMetadata(metadata)
	}
	if err != nil {
		c.faults.Add(d, "spec.jobTemplate: %v", err)
		return
	}
	if metadata == nil {
		metadata = map[string]any{}
	}
	template := &unstructured.Unstructured{Object: map[string]any{"metadata": metadata}}
	labels := template.GetLabels()
	if labels[queueLabel] == "" {
		if labels == nil {
			labels = map[string]string{}
		}
		labels[queueLabel] = own[queueLabel]
	}
	delete(own, queueLabel)
	job.SetLabels(migration.OrNil(own))
	labels, annotations := c.convertKeys(d, job.GetNamespace(), labels, template.GetAnnotations())
	template.SetLabels(migration.OrNil(labels))
	template.SetAnnotations(migration.OrNil(annotations))
	if err := unstructured.SetNestedMap(job.Object, metadata, templatePath...); err != nil {
		c.faults.Add(d, "%v", err)
		return
	}
	if spec, has, _ := unstructured.NestedMap(job.Object, "spec", "jobTemplate", "spec"); has {
		inner := map[string]any{"spec": spec}
		c.convertSpec(d, inner)
		_ = unstructured.SetNestedMap(job.Object, inner["spec"].(map[string]any), "spec", "jobTemplate", "spec")
	}
	c.behind = append(c.behind, job)
}

func (c *converter) convertKeys(d migration.Document, namespace string, labels, annotations map[string]string) (newLabels, newAnnotations map[string]string) {
	newLabels, newAnnotations = map[string]string{}, map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		value := labels[key]
		switch {
		case key == queueLabel:
			c.chooseQuota(d, namespace, value, newLabels)
		case key == classLabel:
			c.choosePriority(d, value, newLabels, newAnnotations)
		case key == maxExecLabel:
			newAnnotations[wellknown.MaxExecTimeAnnotation] = value
		case key == groupLabel && isPod(d.Object):
			newLabels[wellknown.PodGroupLabel] = value
		case key == managedLabel && isPod(d.Object):
		case strings.HasPrefix(key, prefix):
			c.findKey(d, "metadata.labels: "+key)
		default:
			newLabels[key] = value
		}
	}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		value := annotations[key]
		switch {
		case key == minParallelism && (annotations[equalCompletions] == "true" || d.Object.GetKind() != "Job" && d.Object.GetKind() != "CronJob"):
			c.findKey(d, "metadata.annotations: "+key)
		case key == minParallelism:
			newAnnotations[wellknown.MinCountAnnotation] = "main=" + value
		case key == equalCompletions && value == "true":
			c.result.Find(d.Name(), "metadata.annotations: "+key, "a Job with fewer pods still has all its completions",
				"set no "+wellknown.MinCountAnnotation+" on an Indexed Job whose pods need each other")
		case key == equalCompletions:
		case key == maxExecLabel:
			newAnnotations[wellknown.MaxExecTimeAnnotation] = value
		case key == groupSize && isPod(d.Object):
			newAnnotations[wellknown.PodGroupSizeAnnotation] = value
		case strings.HasPrefix(key, prefix):
			c.findKey(d, "metadata.annotations: "+key)
		default:
			newAnnotations[key] = value // including the parameters of ProvisioningRequests, which kube-queue reads
		}
	}
	newAnnotations[wellknown.SuspendAnnotation] = "true"
	return newLabels, newAnnotations
}

// findKey reports a key of Kueue without an equivalent, which is removed.
func (c *converter) findKey(d migration.Document, field string) {
	if strings.Contains(field, topologyPrefix) {
		c.result.Find(d.Name(), field, "kube-queue does not place pods, and knows no topology", "use the topology features of the scheduler, or pod affinity")
		return
	}
	c.result.Find(d.Name(), field, "the key has no equivalent, and is removed", "nothing")
}

// chooseQuota sets the label that selects the quota, unless it is the only one that the namespace can use. A job whose
// namespace may not use its ClusterQueue then waits, as in Kueue.
func (c *converter) chooseQuota(d migration.Document, namespace, localQueue string, labels map[string]string) {
	n := c.localQueues[namespace+"/"+localQueue]
	choice := c.isChoice(n, namespace)
	if namespace == "" { // kubectl sets it, so look for the queue of this name in any namespace
		var found []*node
		for _, key := range slices.Sorted(maps.Keys(c.localQueues)) {
			if ns, name, _ := strings.Cut(key, "/"); name == localQueue {
				if !slices.Contains(found, c.localQueues[key]) {
					found = append(found, c.localQueues[key])
				}
				choice = choice || c.isChoice(c.localQueues[key], ns)
			}
		}
		if len(found) == 1 {
			n = found[0]
		} else if len(found) > 1 {
			c.result.Find(d.Name(), "metadata.labels: "+queueLabel, fmt.Sprintf("the job has no namespace, and LocalQueues %q of several namespaces belong to different ClusterQueues", localQueue),
				"set the namespace of the job; its quota is that of the namespace")
			return
		}
	}
	if n == nil {
		c.result.Find(d.Name(), "metadata.labels: "+queueLabel, fmt.Sprintf("the input has no LocalQueue %q with a ClusterQueue in the namespace of the job", localQueue), "add it to the input, or list the namespace at a node of the tree")
		return
	}
	if choice {
		labels[wellknown.QuotaNameLabel] = n.name
	}
}

// choosePriority sets the class of the job, or its value.
func (c *converter) choosePriority(d migration.Document, name string, labels, annotations map[string]string) {
	class, has := c.classes[name]
	switch {
	case has && class.asAnnotation:
		annotations[wellknown.PriorityAnnotation] = strconv.Itoa(int(class.value))
		return
	case !has:
		if _, exists := c.podClasses[name]; !exists {
			c.result.Find(d.Name(), "metadata.labels: "+classLabel, fmt.Sprintf("the input has no WorkloadPriorityClass %q, so the job waits until a PriorityClass of this name exists", name), "add the class to the input")
		}
	}
	labels[wellknown.PriorityClassKey] = name
}

// convertSpec removes the suspend field or the gate of a pod, which the mark sets, and the keys of Kueue in pod
// templates.
func (c *converter) convertSpec(d migration.Document, job map[string]any) {
	spec, _ := job["spec"].(map[string]any)
	if gates, is := spec["schedulingGates"].([]any); is {
		gates = slices.DeleteFunc(gates, func(gate any) bool {
			fields, _ := gate.(map[string]any)
			name, _ := fields["name"].(string)
			return strings.HasPrefix(name, prefix)
		})
		if spec["schedulingGates"] = gates; len(gates) == 0 {
			delete(spec, "schedulingGates")
		}
	}
	for _, path := range [][]string{{"spec", "suspend"}, {"spec", "runPolicy", "suspend"}} {
		if suspended, is, _ := unstructured.NestedBool(job, path...); is && suspended {
			unstructured.RemoveNestedField(job, path...)
		}
	}
	for _, path := range [][]string{{"spec", "managedBy"}, {"spec", "runPolicy", "managedBy"}} {
		if manager, _, _ := unstructured.NestedString(job, path...); strings.HasPrefix(manager, prefix) {
			c.result.Find(d.Name(), strings.Join(path, "."), "kube-queue queues the jobs of its own cluster only", "nothing: the field is removed")
			unstructured.RemoveNestedField(job, path...)
		}
	}
	migration.Walk(job["spec"], "spec", func(path string, metadata map[string]any) {
		for _, field := range []string{"labels", "annotations"} {
			keys, _ := metadata[field].(map[string]any)
			for _, key := range slices.Sorted(maps.Keys(keys)) {
				if strings.HasPrefix(key, prefix) {
					c.findKey(d, path+"."+field+": "+key)
					delete(keys, key)
				}
			}
			if keys != nil && len(keys) == 0 {
				delete(metadata, field)
			}
		}
	})
}
