package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// queue releases jobs.
type queue struct {
	client kubernetes.Interface
	label  string
	bare   bool
	work   workqueue.TypedRateLimitingInterface[task]

	// released has the released jobs, because a stale event can show a released job as suspended.
	mu       sync.Mutex
	released map[types.UID]bool
}

// task is a step to perform for a job.
type task struct {
	namespace, name string
	uid             types.UID
	ended           bool
}

// run releases jobs until ctx ends.
func (q *queue) run(ctx context.Context, workers int) error {
	q.work = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[task](10*time.Millisecond, time.Second))
	factory := informers.NewSharedInformerFactoryWithOptions(q.client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = q.label }))
	informer := factory.Batch().V1().Jobs().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { q.see(object) },
		UpdateFunc: func(_, object any) { q.see(object) },
	}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return errors.New("stopped before the informer had listed the jobs")
	}
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for q.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	q.work.ShutDown()
	group.Wait()
	factory.Shutdown()
	return nil
}

func (q *queue) see(object any) {
	job, ok := object.(*batchv1.Job)
	if !ok {
		return
	}
	one := task{namespace: job.Namespace, name: job.Name, uid: job.UID}
	switch {
	case job.Spec.Suspend != nil && *job.Spec.Suspend:
		q.work.Add(one)
	case job.Status.CompletionTime != nil && !q.bare:
		one.ended = true
		q.work.Add(one)
	}
}

func (q *queue) next(ctx context.Context) bool {
	one, down := q.work.Get()
	if down {
		return false
	}
	defer q.work.Done(one)
	do := q.release
	if one.ended {
		do = q.end
	}
	if err := do(ctx, one); err != nil && ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "noopqueue: job %s/%s: %v; trying again\n", one.namespace, one.name, err)
		q.work.AddRateLimited(one)
		return true
	}
	q.work.Forget(one)
	return true
}

const releasePatch = `{"spec":{"suspend":false}}`

// release makes four writes, or one with --bare.
func (q *queue) release(ctx context.Context, one task) error {
	if q.isReleased(one) {
		return nil
	}
	if !q.bare {
		_, err := q.client.CoreV1().ConfigMaps(one.namespace).Create(ctx, one.shadow(), metav1.CreateOptions{})
		// It exists if a later step failed in the previous attempt.
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		if err := q.mark(ctx, one, "released"); err != nil {
			return err
		}
	}
	if _, err := q.client.BatchV1().Jobs(one.namespace).Patch(ctx, one.name, types.MergePatchType, []byte(releasePatch), metav1.PatchOptions{}); err != nil {
		return err
	}
	q.mu.Lock()
	q.released[one.uid] = true
	q.mu.Unlock()
	if q.bare {
		return nil
	}
	_, err := q.client.CoreV1().Events(one.namespace).Create(ctx, one.event(), metav1.CreateOptions{})
	return err
}

func (q *queue) isReleased(one task) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.released[one.uid]
}

func (q *queue) end(ctx context.Context, one task) error { return q.mark(ctx, one, "ended") }

// mark writes the state of the job into its ConfigMap.
func (q *queue) mark(ctx context.Context, one task, state string) error {
	patch := []byte(`{"data":{"state":"` + state + `"}}`)
	_, err := q.client.CoreV1().ConfigMaps(one.namespace).Patch(ctx, one.name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil // it was deleted with its job
	}
	return err
}

// shadow returns the ConfigMap of a job. The garbage collector deletes it with the job.
func (t task) shadow() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: t.name, Namespace: t.namespace,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: t.name, UID: t.uid}},
		},
		Data: map[string]string{"state": "seen"},
	}
}

func (t task) event() *corev1.Event {
	now := metav1.Now()
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: t.name + ".", Namespace: t.namespace},
		InvolvedObject: corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: t.namespace, Name: t.name, UID: t.uid},
		Reason:         "Released", Message: "The job may run.", Type: corev1.EventTypeNormal,
		Source: corev1.EventSource{Component: "noopqueue"}, FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
}
