package controller

import (
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/pkg/controller"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
)

// aheadClock shows a time in the future.
type aheadClock struct {
	clock.RealClock
	ahead atomic.Int64
}

func (c *aheadClock) Now() time.Time { return c.RealClock.Now().Add(time.Duration(c.ahead.Load())) }

func (c *aheadClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// A victim that has not stopped after five minutes is late, and another one is evicted, but not while its pod writes a
// checkpoint within its grace period. The node of the pod does not exist, so nothing ends the pod.
func TestNoOtherUnitIsEvictedWhileThePodOfAVictimIsWithinItsGracePeriod(t *testing.T) {
	s := newStage(t)
	s.create(s.queues(), `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: Queue, metadata: {name: root}, spec: {preemption: {withinQueue: LowerPriority, minRunTime: 0s}}}`)
	now := &aheadClock{}
	startController(t, func(cfg *controller.Config) { cfg.Clock = now })
	isEvicted := func(name string) bool {
		unit, err := s.asExtensions().Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
		return lifecycle.EvictionOf(unit).UnderWay()
	}
	job, err := s.kube.CoreV1().ConfigMaps(s.namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "job"}}, metav1.CreateOptions{})
	must(t, err)
	s.unit("other", `resource: {cpu: 2}`)
	s.becomes("other", "phase", "Dequeued")
	s.create(s.units, `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: QueueUnit, metadata: {name: saves},
		spec: {consumerRef: {apiVersion: v1, kind: ConfigMap, name: job, uid: `+string(job.UID)+`}, resource: {cpu: 2}}}`)
	s.becomes("saves", "phase", "Dequeued")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "saves", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}},
		Spec: corev1.PodSpec{NodeName: "lost", TerminationGracePeriodSeconds: new(int64(1800)), Containers: []corev1.Container{{Name: "main", Image: "main",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("2")}}}}},
	}
	pods := s.kube.CoreV1().Pods(s.namespace)
	s.eventually("the pod is created", func() string { // its ServiceAccount is created asynchronously
		if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})

	s.unit("urgent", `priority: 5, resource: {cpu: 2}`)
	s.eventually("the unit that started last is evicted", func() string {
		if !isEvicted("saves") {
			return "it is not"
		}
		return ""
	})
	must(t, pods.Delete(t.Context(), "saves", metav1.DeleteOptions{}))
	s.unit("before", `resource: {cpu: 1}`) // the controller sees the deletion of the pod before this has a reason
	s.becomes("before", "reason", "QuotaExceeded")
	now.ahead.Store(int64(6 * time.Minute))
	s.unit("after", `resource: {cpu: 1}`)
	s.becomes("after", "reason", "QuotaExceeded")
	if isEvicted("other") {
		t.Error("another unit is evicted too")
	}
	must(t, pods.Delete(t.Context(), "saves", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	s.stops("saves")
	s.becomes("urgent", "phase", "Dequeued")
}
