package loadgen

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

// patience is how long a request is repeated.
var patience = wait.Backoff{Duration: 50 * time.Millisecond, Factor: 1, Steps: 600}

// passing reports whether a request succeeds if it is repeated: the API server was not available, or the unit had changed, of
// which the watch soon shows the new version.
func passing(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return apierrors.IsConflict(err) || code == http.StatusTooManyRequests || code >= 500
}

func again(ctx context.Context, send func() error) error {
	return retry.OnError(patience, func(err error) bool { return ctx.Err() == nil && passing(err) }, send)
}

// Create creates a unit. A repeated request can find that the unit exists.
func (r *Run) Create(ctx context.Context, index int) error {
	id, late := r.identityOf(index), r.Elapsed()-r.arrivals[index].At
	body, err := r.body(index)
	if err != nil {
		return err
	}
	err = again(ctx, func() error {
		return r.client.SchedulingV1alpha1().RESTClient().Post().Namespace(id.namespace).Resource("queueunits").
			SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating unit %s/%s: %w", id.namespace, id.unit, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.units[index].Late, r.units[index].Created = late, r.Elapsed()
	r.counts.Created++
	return nil
}

// Release releases a unit as kube-queue-controller does, to measure the API server.
func (r *Run) Release(ctx context.Context, index int) error {
	return r.patch(ctx, index, func() ([]byte, error) { return releasePatch("perf/perf-0/"+r.identityOf(index).namespace, time.Now()) })
}

// End ends a unit in the version that was last seen, if the unit is watched.
func (r *Run) End(ctx context.Context, index int) error {
	err := r.patch(ctx, index, func() ([]byte, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return endPatch(r.units[index].version, time.Now())
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

// endDue waits for a unit whose job has run long enough, and ends it.
func (r *Run) endDue(ctx context.Context, _ int) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case index := <-r.due:
		return r.End(ctx, index)
	}
}

// patch merges a patch into a unit's status.
func (r *Run) patch(ctx context.Context, index int, patch func() ([]byte, error)) error {
	id := r.identityOf(index)
	err := again(ctx, func() error {
		body, err := patch()
		if err != nil {
			return err
		}
		return r.client.SchedulingV1alpha1().RESTClient().Patch(types.MergePatchType).Namespace(id.namespace).Resource("queueunits").
			Name(id.unit).SubResource("status").Body(body).Do(ctx).Error()
	})
	if err != nil {
		return fmt.Errorf("patching unit %s/%s: %w", id.namespace, id.unit, err)
	}
	return nil
}
