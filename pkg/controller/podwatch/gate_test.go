package podwatch

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/pods"
)

func TestAPodAtTheGateUsesNothingAndThenCountsForItsJob(t *testing.T) {
	waits := func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: wellknown.PodGate}} }
	gates := func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/other"}} }
	for _, c := range []struct{ name, metadata, holder string }{
		{"a pod", `labels: {kube-queue/gated: "true"}`, "p"},
		{"a pod of a group", `labels: {kube-queue/gated: "true", kube-queue/pod-group: g}`, "kube-queue/pod-group=g"},
		{"one that something else controls", `labels: {kube-queue/gated: "true", kube-queue/pod-group: g}, ownerReferences: [{uid: set, controller: true}]`, "kube-queue/pod-group=g"},
		{"a pod of a job that grows, with the label of a group", `labels: {kube-queue/gated: "true", kube-queue/pod-group: g}, annotations: {kube-queue/growth: workers}, ownerReferences: [{uid: job, controller: true}]`, "job"},
		{"a pod that only claims to be of a group", `labels: {kube-queue/pod-group: g}, ownerReferences: [{uid: job, controller: true}]`, "job"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, backend.AllPods)
			d.hold(c.holder)
			d.podSeen(d.pod(c.metadata, waits))
			d.uses(c.holder, 0)
			if n := d.ledger.Busy(pods.Holder{Namespace: "a", UID: c.holder}); n != 0 {
				t.Errorf("%d pods are busy, want 0", n)
			}
			d.podSeen(d.pod(c.metadata, gates)) // kube-queue does not know when other gates open
			d.uses(c.holder, 1)
			d.podSeen(d.pod(c.metadata))
			d.uses(c.holder, 1)
			d.uses("", 0)
		})
	}
}
