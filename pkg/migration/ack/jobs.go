package ack

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/migration"
)

// prefixes are the prefixes of keys of the former queue.
var prefixes = []string{"kube-queue/", "koord-queue/"}

func hasPrefix(key string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

func withoutPrefix(key string) string {
	for _, prefix := range prefixes {
		key = strings.TrimPrefix(key, prefix)
	}
	return key
}

const alibaba = "quota.scheduling.alibabacloud.com/"

// quotaLabels choose the quota of a job; the first that is set has precedence.
var quotaLabels = []string{alibaba + "name", koordinator + "name", "alibabacloud.com/quota-name"}

// preemptibleKeys say whether a job is preemptible.
var preemptibleKeys = []string{alibaba + "preemptible", koordinator + "preemptible"}

// bookkeeping are keys, without their prefix, that the former queue writes.
var bookkeeping = []string{"job-has-enqueued", "job-enqueue-timestamp", "job-dequeue-timestamp", "related-queueunit", "related-apiversion-kind",
	"related-object", "related-podset-name"}

// sameKeys are keys that have the same meaning in kube-queue.
var sameKeys = []string{wellknown.SuspendAnnotation, wellknown.PriorityAnnotation, wellknown.ActiveAnnotation, wellknown.MaxExecTimeAnnotation,
	wellknown.MinResourcesAnnotation, wellknown.PreemptibleLabel, wellknown.QuotaNameLabel, wellknown.MinCountAnnotation, wellknown.PriorityClassKey}

// keysOfJobs are keys of jobs without an equivalent, with what to do instead.
var keysOfJobs = map[string]string{
	"kube-queue/queue-name":                     "nothing: a job waits in the queue of its quota, which the label kube-queue/quota-name chooses",
	"koord-queue/queue-name":                    "nothing: a job waits in the queue of its quota, which the label kube-queue/quota-name chooses",
	"alibabacloud.com/schedule-admission":       "nothing: a job is released as a whole",
	"alibabacloud.com/disable-resource-recycle": "nothing: quota is free when the job has ended and its pods are gone",
	"scheduling.x-k8s.io/placement":             "nothing: the key had no effect",
	koordinator + "quota-oversold-type":         "set --oversell-rate for the complete tree",
}

// isFormer reports whether a key belongs to the former queue.
func isFormer(key string) bool {
	return hasPrefix(key) || strings.HasPrefix(key, koordinator) || strings.HasPrefix(key, alibaba) || slices.Contains(sameKeys, key) ||
		slices.Contains(quotaLabels, key) || keysOfJobs[key] != ""
}

// isJob reports whether the object is a job of a queued kind with a key of the former queue.
func isJob(object *unstructured.Unstructured) bool {
	if _, queued := migration.KindOfJob(object); !queued {
		return false
	}
	for _, keys := range []map[string]string{object.GetLabels(), object.GetAnnotations()} {
		for key := range keys {
			if isFormer(key) {
				return true
			}
		}
	}
	return false
}

// isSuspended reports whether the object is a job whose only mark is its suspend field. Without another key, it does
// not show which queue the input comes from.
func isSuspended(object *unstructured.Unstructured) bool {
	_, queued := migration.KindOfJob(object)
	return queued && object.GetLabels()[wellknown.KueueLabel] == "" && slices.ContainsFunc([][]string{{"spec", "suspend"}, {"spec", "runPolicy", "suspend"}}, func(path []string) bool {
		suspended, _, _ := unstructured.NestedBool(object.Object, path...)
		return suspended
	})
}

// convertJobs converts the manifests of jobs. The mark is the same, so only other keys change.
func (c *converter) convertJobs() {
	for _, d := range c.jobs {
		if d.Object.GetUID() != "" {
			c.live++
			continue
		}
		job := migration.Applicable(d.Object)
		labels, annotations := map[string]string{}, map[string]string{}
		old := job.GetLabels()
		for _, key := range quotaLabels {
			if old[key] != "" && labels[wellknown.QuotaNameLabel] == "" {
				labels[wellknown.QuotaNameLabel] = old[key]
			}
		}
		for _, keys := range []map[string]string{job.GetAnnotations(), old} {
			for _, key := range preemptibleKeys {
				if keys[key] != "" {
					labels[wellknown.PreemptibleLabel] = keys[key]
				}
			}
		}
		c.keep(d, "metadata.labels", old, labels)
		c.keep(d, "metadata.annotations", job.GetAnnotations(), annotations)
		job.SetLabels(migration.OrNil(labels))
		job.SetAnnotations(migration.OrNil(annotations))
		c.checkQuota(d, labels[wellknown.QuotaNameLabel])
		c.checkKind(d, annotations)
		c.result.Objects = append(c.result.Objects, job)
	}
	if len(c.unqueued) > 0 {
		c.result.Step("Add these kinds to the value enabledExtensions, or mark their jobs with annotation %s: \"true\": %s. Otherwise the jobs in the input that only their suspend field marks wait forever.",
			wellknown.SuspendAnnotation, strings.Join(slices.Sorted(maps.Keys(c.unqueued)), ", "))
	}
	if c.live > 0 {
		c.result.Step("%d jobs in the input exist in a cluster already, and are not converted. Those that wait have the mark of kube-queue, and are queued when it runs; those that run are left alone.", c.live)
	}
}

// keep copies the keys that remain.
func (c *converter) keep(d migration.Document, field string, old, into map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(old)) {
		short := withoutPrefix(key)
		switch {
		case slices.Contains(quotaLabels, key), slices.Contains(preemptibleKeys, key):
		case hasPrefix(key) && slices.Contains(bookkeeping, short):
		case slices.Contains(sameKeys, key), !isFormer(key):
			into[key] = old[key]
		case key == "koord-queue/min-resources":
			into[wellknown.MinResourcesAnnotation] = old[key]
		default:
			c.result.Find(d.Name(), field+": "+key, "the key has no equivalent, and is removed", cmp.Or(keysOfJobs[key], "nothing"))
		}
	}
}

// checkKind notes the kind of a job that only its suspend field marks, if the values do not enable the kind.
func (c *converter) checkKind(d migration.Document, annotations map[string]string) {
	kind, _ := migration.KindOfJob(d.Object)
	enabled, set := c.result.Values["enabledExtensions"].([]any)
	if _, marked := annotations[wellknown.SuspendAnnotation]; set && !marked && isSuspended(d.Object) && !slices.Contains(enabled, any(kind.Extension)) {
		c.unqueued[kind.Extension] = true
	}
}

// checkQuota reports a quota that the namespace of the job may not use.
func (c *converter) checkQuota(d migration.Document, name string) {
	namespace := d.Object.GetNamespace()
	if name == "" || c.tree == nil || namespace == "" {
		return
	}
	lists := func(other string) bool {
		return slices.ContainsFunc(c.groups, func(g group) bool { return slices.Contains(g.node.Namespaces, other) })
	}
	for _, g := range c.groups {
		if g.node.Name == name && (slices.Contains(g.node.Namespaces, namespace) || slices.Contains(g.node.Namespaces, "*") && !lists(namespace)) {
			return
		}
	}
	c.result.Find(d.Name(), "metadata.labels: quota", fmt.Sprintf("a job may use the quotas whose nodes list its namespace, and %q does not list %s", name, namespace),
		fmt.Sprintf("add %s to the namespaces of node %s", namespace, name))
}
