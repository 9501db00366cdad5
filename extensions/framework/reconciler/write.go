package reconciler

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
)

func (r *reconciler) patchUnitStatus(ctx context.Context, o *observation, fields map[string]any) error {
	return r.patchUnit(ctx, o, "status", fields, nil)
}

// patchUnit patches spec or status, and annotations together with the spec.
func (r *reconciler) patchUnit(ctx context.Context, o *observation, part string, fields, annotations map[string]any) error {
	version, err := r.sendUnit(ctx, o.unit, part, fields, annotations)
	r.awaitUnit(o, version, err)
	return err
}

// sendUnit patches the unit without awaiting the result, and returns its new version.
func (r *reconciler) sendUnit(ctx context.Context, unit *v1alpha1.QueueUnit, part string, fields, annotations map[string]any) (version string, err error) {
	data, err := guardedPatch(unit, annotations, map[string]any{part: fields})
	if err != nil {
		return "", err
	}
	var subresources []string
	if part != "spec" {
		subresources = append(subresources, part)
	}
	patched, err := r.client.QueueUnits(unit.Namespace).Patch(ctx, unit.Name, types.MergePatchType, data, metav1.PatchOptions{}, subresources...)
	if err != nil {
		return "", fmt.Errorf("patching the %s of QueueUnit %s/%s: %w", part, unit.Namespace, unit.Name, err)
	}
	return patched.ResourceVersion, nil
}

// mergeJob sends a merge patch of the job and awaits the result.
func (r *reconciler) mergeJob(ctx context.Context, o *observation, data []byte, subresources ...string) error {
	return r.patchJob(ctx, o, types.MergePatchType, data, subresources...)
}

// patchJob patches the job and awaits the result.
func (r *reconciler) patchJob(ctx context.Context, o *observation, kind types.PatchType, data []byte, subresources ...string) error {
	version, err := r.jobs.Patch(ctx, kind, o.key.Namespace, o.key.Name, data, subresources...)
	r.memory.await(o.key, o.now, func(a *awaited) {
		a.job = after(o.job.GetResourceVersion(), version, err, a.job)
	})
	if err != nil {
		return fmt.Errorf("patching %s %s: %w", r.kind.Kind, o.key, err)
	}
	return nil
}

// awaitUnit awaits the result of a write on the unit.
func (r *reconciler) awaitUnit(o *observation, written string, err error) {
	r.memory.await(o.key, o.now, func(a *awaited) {
		a.unit = after(o.unit.ResourceVersion, written, err, a.unit)
	})
}

// after returns the version to await after a write on the version that was seen: the
// written version or, after a conflict, any newer one.
func after(seen, written string, err error, before version) version {
	switch {
	case err == nil && written != "":
		return version{value: written}
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return version{value: seen, pass: true}
	default:
		return before
	}
}
