package loadgen

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
)

// unit returns a unit like those that job-extensions creates for a Job with one pod, but without an
// owner, because the jobs do not exist.
func (r *Run) unit(index int) *v1alpha1.QueueUnit {
	u := &r.units[index]
	class := &r.Classes[u.Class]
	requests := times(class.Requests, class.shape(u.Number))
	// Different times, so that units are ordered by arrival.
	submitted := metav1.NewMicroTime(r.start.Add(u.At + time.Duration(index)*time.Microsecond))
	return &v1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{Namespace: u.Namespace, Name: u.Name},
		Spec: v1alpha1.QueueUnitSpec{
			ConsumerRef: v1alpha1.ConsumerReference{
				APIVersion: "batch/v1", Kind: "Job", Namespace: u.Namespace, Name: u.Job,
				UID: types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", index)),
			},
			Priority: class.Priority, SubmissionTime: &submitted, Active: new(true), Preemptible: new(true),
			PodSets:  []v1alpha1.PodSet{{Name: "main", Count: 1, Requests: requests, Limits: requests}},
			Resource: requests,
		},
	}
}

// again repeats a request for half a minute if it can still succeed: the API server was unavailable, or the unit has
// changed and the watch will soon show the new version.
func again(ctx context.Context, send func() error) error {
	return retry.OnError(wait.Backoff{Duration: 50 * time.Millisecond, Factor: 1, Steps: 600}, func(err error) bool {
		final := apierrors.IsAlreadyExists(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsInvalid(err)
		return ctx.Err() == nil && !final
	}, send)
}

// Create creates a unit. A repeated request may find that the unit exists.
func (r *Run) Create(ctx context.Context, index int) error {
	unit, late := r.unit(index), r.Elapsed()-r.units[index].At
	err := again(ctx, func() error {
		return r.client.Post().Namespace(unit.Namespace).Resource("queueunits").Body(unit).Do(ctx).Error()
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating unit %s/%s: %w", unit.Namespace, unit.Name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.units[index].Late, r.units[index].Created = late, r.Elapsed()
	r.counts.Created++
	return nil
}

// Release releases a unit as kube-queue-controller does. It is used only to measure the API server.
func (r *Run) Release(ctx context.Context, index int) error {
	return r.patch(ctx, index, func() map[string]any {
		namespace := r.units[index].Namespace
		place := lifecycle.Place{Quota: "perf/perf-0/" + namespace, Queue: "perf-perf-0-" + namespace}
		return map[string]any{"status": lifecycle.Dequeued(place, 1, metav1.NewMicroTime(time.Now()))}
	})
}

// End ends a unit as job-extensions does after the job has succeeded. If the unit is watched, the API server refuses
// the write unless it is based on the latest version.
func (r *Run) End(ctx context.Context, index int) error {
	err := r.patch(ctx, index, func() map[string]any {
		patch := map[string]any{"status": lifecycle.Finished(&v1alpha1.QueueUnit{}, true, "CompletionsReached",
			"Reached expected number of succeeded pods", metav1.NewTime(time.Now()))}
		r.mu.Lock()
		defer r.mu.Unlock()
		if version := r.units[index].version; version != "" {
			patch["metadata"] = map[string]any{"resourceVersion": version}
		}
		return patch
	})
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.units[index].Ended = r.Elapsed()
	r.counts.Ended++
	return nil
}

// patch merges a patch into a unit's status.
func (r *Run) patch(ctx context.Context, index int, patch func() map[string]any) error {
	unit := &r.units[index]
	err := again(ctx, func() error {
		body, err := json.Marshal(patch())
		if err != nil {
			return err
		}
		return r.client.Patch(types.MergePatchType).Namespace(unit.Namespace).Resource("queueunits").
			Name(unit.Name).SubResource("status").Body(body).Do(ctx).Error()
	})
	if err != nil {
		return fmt.Errorf("patching unit %s/%s: %w", unit.Namespace, unit.Name, err)
	}
	return nil
}
