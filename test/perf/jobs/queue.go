// Package jobs measures batch Jobs on a complete cluster: completions per second, delays until
// the release, and API writes, with or without a queue.
//
// Terms. A queue releases the jobs: kube-queue, none, or another queue that selects its jobs
// by a label. An Outcome is what one batch of jobs in one queue took, from the first create until no more
// writes happen.
//
// Invariants. The jobs of all queues are equal except for the mark by which the queue selects
// them. Each queue has a new cluster, in which neither the programs of another queue run nor the
// admission policies of kube-queue are installed, which would slow down its jobs. A few jobs before
// the others do not count. Delays are taken from the audit log, the end of jobs from a watch.
package jobs

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// Names of the queues without a label.
const (
	None      = "none"
	KubeQueue = "kube-queue"
)

// Queue is a queue that releases jobs.
type Queue struct {
	// Name is the queue on the command line.
	Name string
	// key and value are the label of its jobs, if any.
	key, value string
}

// ParseQueue parses none, kube-queue or label:KEY=VALUE.
func ParseQueue(text string) (Queue, error) {
	if text == None || text == KubeQueue {
		return Queue{Name: text}, nil
	}
	label, ok := strings.CutPrefix(text, "label:")
	key, value, pair := strings.Cut(label, "=")
	if !ok || !pair || key == "" || value == "" {
		return Queue{}, fmt.Errorf("unknown queue %q; known queues: %s, %s and label:KEY=VALUE", text, None, KubeQueue)
	}
	return Queue{Name: text, key: key, value: value}, nil
}

// Labelled reports whether the queue selects its jobs by a label, unlike kube-queue and none.
func (q Queue) Labelled() bool { return q.key != "" }

// job returns a job with one pod with one small container.
func (q Queue) job(name string) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace}}
	switch {
	case q.Name == KubeQueue:
		job.Annotations = map[string]string{wellknown.SuspendAnnotation: "true"}
	case q.Labelled():
		job.Labels = map[string]string{q.key: q.value}
	}
	job.Spec.Suspend = new(q.Name != None)
	job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
		Name: "main", Image: "none",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("16Mi")}},
	}}}
	return job
}

// tree returns the quota tree. Without a limit on jobs it has a cpu limit that is
// never reached, so that the quota is still computed.
func tree(room int) quotav1beta1.ElasticQuotaNode {
	limit := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000000")}
	if room > 0 {
		limit[wellknown.MaxJobsResource] = *resource.NewQuantity(int64(room), resource.DecimalSI)
	}
	return quotav1beta1.ElasticQuotaNode{Name: "root", Children: []quotav1beta1.ElasticQuotaNode{{Name: "jobs", Namespaces: []string{Namespace}, Max: limit}}}
}
