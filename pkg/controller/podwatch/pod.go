package podwatch

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/controller/codec"
	"kube-queue.dev/kube-queue/pkg/pods"
	"kube-queue.dev/kube-queue/pkg/requests"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// slim is the stored part of an object. It is small because a cluster may have a hundred thousand pods.
type slim struct {
	metav1.ObjectMeta
	// owner identifies the object's owner; empty if it has none. orphan is whether only labels identify it.
	owner  string
	orphan bool
}

func slimOf(o metav1.Object) slim {
	owner, orphan := codec.OwnerOf(o)
	return slim{owner: owner, orphan: orphan, ObjectMeta: metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion()}}
}

// pod is the stored part of a pod.
type pod struct {
	slim
	use backend.PodUse
	// idle is whether it has ended or waits at the gate.
	idle bool
	// goneAt is when the API server stops counting a deleted pod, even if it still exists; zero for other pods. From
	// then on, the pod uses ended.
	goneAt time.Time
	ended  backend.PodUse
	stray  bool
	// unschedulable is why the scheduler finds no node for the pod; the zero Handle if it reports no reason. Pods that
	// wait for the same reason share it.
	unschedulable unique.Handle[string]
}

func (w *Watch) slimPod(p *corev1.Pod) *pod {
	over := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	idle := over || isGated(p)
	slim := &pod{slim: slimOf(p), use: w.rules.Weigh(p, idle), idle: idle}
	slim.stray = w.counts(p, slim.orphan)
	if message := unschedulable(p); message != "" {
		slim.unschedulable = unique.Make(message)
	}
	if goneAt, leaves := requests.GoneAt(ptr.Deref(p.DeletionTimestamp, metav1.Time{}).Time, p.DeletionGracePeriodSeconds); leaves && !over {
		slim.goneAt, slim.ended = goneAt, w.rules.Weigh(p, true)
	}
	return slim
}

// maxUnschedulable is the maximum length, in bytes, of a stored message of the scheduler.
const maxUnschedulable = 512

// unschedulable returns why the scheduler finds no node for the pod; empty if it does not report that.
func unschedulable(p *corev1.Pod) string {
	if p.Spec.NodeName != "" {
		return ""
	}
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse || c.Reason != corev1.PodReasonUnschedulable {
			continue
		}
		if len(c.Message) > maxUnschedulable {
			return strings.ToValidUTF8(c.Message[:maxUnschedulable], "") + "..."
		}
		return cmp.Or(c.Message, "the scheduler gives no reason")
	}
	return ""
}

// isGated reports whether the pod waits at the gate of kube-queue and so uses nothing.
func isGated(p *corev1.Pod) bool {
	return p.Spec.NodeName == "" && slices.ContainsFunc(p.Spec.SchedulingGates, func(gate corev1.PodSchedulingGate) bool { return gate.Name == wellknown.PodGate })
}

// counts reports whether the pod counts for its namespace while it belongs to no unit.
func (w *Watch) counts(p *corev1.Pod, orphan bool) bool {
	switch w.rules.Strays {
	case backend.AllPods:
		return true
	case backend.UnqueuedPods:
		return orphan || !isStatic(p)
	default:
		return orphan
	}
}

// isStatic reports whether the pod is a static pod of the cluster. Only administrators create pods in kube-system; in
// other namespaces, anyone can create a pod with the annotation.
func isStatic(p *corev1.Pod) bool {
	_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror && p.Namespace == metav1.NamespaceSystem
}

// samePod reports whether two versions of a pod are counted in the same way.
func samePod(a, b *pod) bool {
	return sameOwner(&a.slim, &b.slim) && a.idle == b.idle && a.stray == b.stray && a.unschedulable == b.unschedulable && a.goneAt.Equal(b.goneAt) &&
		reflect.DeepEqual(a.use, b.use) && reflect.DeepEqual(a.ended, b.ended)
}

func (w *Watch) podSeen(seen *pod) {
	w.put(func() scheduler.Event { return w.take(seen) })
}

func (w *Watch) podGone(last *pod) {
	w.put(func() scheduler.Event {
		w.ending.forget(last)
		return scheduler.PodGone{Namespace: last.Namespace, UID: string(last.UID)}
	})
}

// take returns the current state of the pod.
func (w *Watch) take(seen *pod) scheduler.Event {
	if seen.goneAt.IsZero() {
		w.ending.forget(seen)
	} else {
		w.ending.watch(seen)
	}
	return scheduler.PodChanged{Pod: w.current(seen)}
}

func (w *Watch) current(seen *pod) pods.Pod {
	use, idle := seen.use, seen.idle
	if !seen.goneAt.IsZero() && !w.clock.Now().Before(seen.goneAt) {
		use, idle = seen.ended, true
	}
	message := ""
	if seen.unschedulable != (unique.Handle[string]{}) {
		message = seen.unschedulable.Value()
	}
	own, shared := w.rules.Requests(use)
	return pods.Pod{Namespace: seen.Namespace, UID: string(seen.UID), Owner: seen.owner,
		Requests: own, Shared: shared, Idle: idle, Terminating: !seen.goneAt.IsZero(), Stray: seen.stray, Unschedulable: message}
}

// podEnded handles the end of the grace period of a deleted pod.
func (w *Watch) podEnded(uid string) {
	w.put(func() scheduler.Event {
		seen := w.ending.pods[uid]
		if seen == nil {
			return nil
		}
		if left := seen.goneAt.Sub(w.clock.Now()); left > 0 { // the clock was set back
			w.ending.due.AddAfter(uid, left)
			return nil
		}
		return w.take(seen)
	})
}
