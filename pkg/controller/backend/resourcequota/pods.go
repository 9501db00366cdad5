package resourcequota

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	helpers "k8s.io/component-helpers/resource"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/quota/resourcequota"
)

// pod is the part of a pod that is stored, because a cluster may have a hundred thousand pods.
type pod struct {
	metav1.ObjectMeta
	use resourcequota.Use
	// goneAt is when the API server stops counting a pod that is being deleted, whether or not it
	// still exists; zero for other pods. The pod uses ended from then on.
	goneAt time.Time
	ended  resourcequota.Use
}

// GetObjectKind returns an empty kind.
func (p *pod) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns the pod itself, because nothing changes it.
func (p *pod) DeepCopyObject() runtime.Object { return p }

func slimPod(p *corev1.Pod) *pod {
	slim := &pod{ObjectMeta: slimMeta(p)}
	one := resourcequota.Pods{Class: classOf(p), Count: 1}
	one.Ended = p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	if !one.Ended {
		options := helpers.PodResourcesOptions{UseStatusResources: true}
		one.Requests, one.Limits = helpers.PodRequests(p, options), helpers.PodLimits(p, options)
	}
	// Amounts that are too large count as the largest possible amount.
	slim.use, _ = resourcequota.Weigh(one)
	if p.DeletionTimestamp != nil && p.DeletionGracePeriodSeconds != nil && !one.Ended {
		slim.goneAt = p.DeletionTimestamp.Add(time.Duration(*p.DeletionGracePeriodSeconds) * time.Second)
		one.Ended = true
		slim.ended, _ = resourcequota.Weigh(one)
	}
	return slim
}

// classOf returns the class with which the API server counts the pod.
func classOf(p *corev1.Pod) resourcequota.Class {
	return resourcequota.Class{
		BestEffort:                p.Status.QOSClass == corev1.PodQOSBestEffort,
		Terminating:               p.Spec.ActiveDeadlineSeconds != nil,
		CrossNamespacePodAffinity: resourcequota.CrossesNamespaces(p.Spec.Affinity),
		PriorityClass:             p.Spec.PriorityClassName,
	}
}

func (s *Source) podSeen(object any) {
	if seen, is := object.(*pod); is {
		s.host.Take(func() backend.Change { return s.takePod(seen) })
	}
}

func (s *Source) podGone(_ string, last any) {
	if seen, is := last.(*pod); is {
		s.host.Take(func() backend.Change {
			s.ending.forget(seen)
			return s.observe(resourcequota.Gone{Namespace: seen.Namespace, UID: string(seen.UID)})
		})
	}
}

// takePod counts the current state of the pod.
func (s *Source) takePod(seen *pod) backend.Change {
	use := seen.use
	if !seen.goneAt.IsZero() {
		if !s.host.Clock.Now().Before(seen.goneAt) {
			use = seen.ended
		}
		s.ending.watch(seen)
	}
	amounts, _ := s.backend.Vector(use)
	return s.observe(resourcequota.PodSeen{Namespace: seen.Namespace, UID: string(seen.UID), Owner: ownerOf(&seen.ObjectMeta), Use: amounts})
}

// podEnded is called when the grace period of a pod that is being deleted is over.
func (s *Source) podEnded(uid string) {
	s.host.Take(func() backend.Change {
		seen := s.ending.pods[uid]
		if seen == nil {
			return backend.Change{}
		}
		return s.takePod(seen)
	})
}

// ending reports when the grace period of pods that are being deleted is over. A pod on a lost node may
// exist forever after that.
type ending struct {
	clock clock.Clock
	over  func(uid string)
	// pods are by UID. Only the goroutine that decides uses them.
	pods map[string]*pod
	due  workqueue.TypedDelayingInterface[string]
}

func newEnding(c clock.Clock, over func(string)) *ending {
	config := workqueue.TypedDelayingQueueConfig[string]{}
	if ticking, is := c.(clock.WithTicker); is {
		config.Clock = ticking
	}
	return &ending{clock: c, over: over, pods: map[string]*pod{}, due: workqueue.NewTypedDelayingQueueWithConfig(config)}
}

func (e *ending) watch(p *pod) {
	uid := string(p.UID)
	before := e.pods[uid]
	e.pods[uid] = p
	if left := p.goneAt.Sub(e.clock.Now()); left > 0 && (before == nil || !before.goneAt.Equal(p.goneAt)) {
		e.due.AddAfter(uid, left)
	}
}

func (e *ending) forget(p *pod) { delete(e.pods, string(p.UID)) }

func (e *ending) run(ctx context.Context) {
	go func() {
		<-ctx.Done()
		e.due.ShutDown()
	}()
	for uid, shutdown := e.due.Get(); !shutdown; uid, shutdown = e.due.Get() {
		e.over(uid)
		e.due.Done(uid)
	}
}
