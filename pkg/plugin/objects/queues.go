package objects

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	visibility "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/plugin/units"
)

// Queues summarizes the Queues.
func Queues(list []v1alpha1.Queue, now metav1.MicroTime) *visibility.QueueReviewStatus {
	status := &visibility.QueueReviewStatus{ObservedTime: now}
	for i := range list {
		q := &list[i]
		status.Queues = append(status.Queues, visibility.QueueSummary{
			Name: q.Name, Quota: q.Status.Quota, Policy: string(q.Status.Policy), Stop: string(cmp.Or(q.Spec.Stop, v1alpha1.StopNone)),
			Pending: q.Status.Pending, Reserved: q.Status.Reserved, Dequeued: q.Status.Dequeued, Running: q.Status.Running, HeadReason: q.Status.HeadReason,
		})
	}
	slices.SortFunc(status.Queues, func(a, b visibility.QueueSummary) int { return cmp.Compare(a.Name, b.Name) })
	status.Total = int32(len(list))
	return status
}

// Order adds up to limit units of a queue: first those that wait, in queue order, then those that hold quota. complete
// says whether the list has the units of all namespaces. Positions are set only then.
func Order(status *visibility.QueueReviewStatus, list []units.Unit, queue string, q *v1alpha1.Queue, complete bool, limit int) {
	var waiting, holding []*units.Unit
	for i := range list {
		u := &list[i]
		switch {
		case u.Status.Queue != queue:
		case u.Phase().Waits():
			waiting = append(waiting, u)
		case u.Phase().HoldsQuota():
			holding = append(holding, u)
		}
	}
	slices.SortFunc(waiting, func(a, b *units.Unit) int {
		switch tried := isTried(a); {
		case tried == isTried(b):
			return units.InQueue(a, b, q)
		case tried: // units that are not tried go last
			return -1
		}
		return 1
	})
	slices.SortFunc(holding, func(a, b *units.Unit) int {
		return cmp.Or(a.Submitted().Compare(b.Submitted()), cmp.Compare(a.Metadata.Namespace, b.Metadata.Namespace), cmp.Compare(a.Metadata.Name, b.Metadata.Name))
	})
	status.Selected = int32(len(waiting) + len(holding))
	status.Total = status.Selected
	for i, u := range waiting[:min(len(waiting), limit)] {
		summary := Summary(u)
		if complete && isTried(u) {
			summary.Position = int32(i + 1)
		}
		status.Units = append(status.Units, summary)
	}
	for _, u := range holding[:min(len(holding), limit-len(status.Units))] {
		status.Units = append(status.Units, Summary(u))
	}
}
