// Command noopqueue is a queue without decisions: it releases every suspended Job with its
// label immediately, in no particular order and without a limit.
//
// It is a baseline for perf. Every queue must at least observe jobs, maintain an object per
// job, release the job and report the release. noopqueue does only that, with as many writes
// as kube-queue needs for a job that does not wait: it creates a ConfigMap, marks it,
// unsuspends the Job, writes an event, and marks the ConfigMap again when the Job has ended.
// It has no other purpose, and ends with the first failure.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
)

// workers is the number of jobs processed concurrently.
const workers = 16

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	label := flag.String("label", "", "`KEY=VALUE` of the jobs to release")
	flag.Parse()
	if err := run(ctx, *label); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "noopqueue:", err)
		stop()
		os.Exit(1)
	}
}

// run releases jobs until ctx ends or something fails.
func run(ctx context.Context, label string) error {
	if label == "" {
		return errors.New("--label is required: set it to the KEY=VALUE of the jobs to release")
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of KUBECONFIG: %w", err)
	}
	config.QPS, config.UserAgent = -1, "noopqueue"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	q := &queue{client}
	slots := make(chan struct{}, workers)
	do := func(step func(context.Context, *batchv1.Job) error, job *batchv1.Job) {
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			if err := step(ctx, job); err != nil {
				cancel(err)
			}
		}()
	}
	// The jobs for which a step was begun. Events come one after the other.
	released, ended := sets.Set[types.UID]{}, sets.Set[types.UID]{}
	see := func(object any) {
		job := object.(*batchv1.Job)
		switch {
		case ptr.Deref(job.Spec.Suspend, false) && !released.Has(job.UID):
			released.Insert(job.UID)
			do(q.release, job)
		case job.Status.CompletionTime != nil && !ended.Has(job.UID):
			ended.Insert(job.UID)
			do(func(ctx context.Context, job *batchv1.Job) error { return q.mark(ctx, job, "ended") }, job)
		}
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = label }))
	if _, err := factory.Batch().V1().Jobs().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, object any) { see(object) }}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	<-ctx.Done()
	return context.Cause(ctx)
}

// queue releases jobs.
type queue struct{ client kubernetes.Interface }

// release makes four writes.
func (q *queue) release(ctx context.Context, job *batchv1.Job) error {
	// The garbage collector deletes it with the job.
	owner := metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID}
	shadow := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: job.Name, Namespace: job.Namespace, OwnerReferences: []metav1.OwnerReference{owner}},
		Data:       map[string]string{"state": "seen"},
	}
	if _, err := q.client.CoreV1().ConfigMaps(job.Namespace).Create(ctx, shadow, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := q.mark(ctx, job, "released"); err != nil {
		return err
	}
	patch := []byte(`{"spec":{"suspend":false}}`)
	if _, err := q.client.BatchV1().Jobs(job.Namespace).Patch(ctx, job.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	now := metav1.Now()
	_, err := q.client.CoreV1().Events(job.Namespace).Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: job.Name + ".", Namespace: job.Namespace},
		InvolvedObject: corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: job.Namespace, Name: job.Name, UID: job.UID},
		Reason:         "Released", Message: "The job may run.", Type: corev1.EventTypeNormal,
		Source: corev1.EventSource{Component: "noopqueue"}, FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, metav1.CreateOptions{})
	return err
}

// mark writes the state of the job into its ConfigMap, unless that was deleted with its job.
func (q *queue) mark(ctx context.Context, job *batchv1.Job, state string) error {
	patch := []byte(`{"data":{"state":"` + state + `"}}`)
	_, err := q.client.CoreV1().ConfigMaps(job.Namespace).Patch(ctx, job.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
