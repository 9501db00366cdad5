package reconciler

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func (r *reconciler) patchUnitStatus(ctx context.Context, l *look, fields map[string]any) error {
	return r.patchUnit(ctx, l, "status", fields, nil)
}

// patchUnit patches spec or status, and with a spec annotations.
func (r *reconciler) patchUnit(ctx context.Context, l *look, part string, fields, annotations map[string]any) error {
	data, err := unitPatch(l.unit, part, fields, annotations)
	if err != nil {
		return err
	}
	var subresources []string
	if part != "spec" {
		subresources = append(subresources, part)
	}
	patched, err := r.client.QueueUnits(l.unit.Namespace).Patch(ctx, l.unit.Name, types.MergePatchType, data, metav1.PatchOptions{}, subresources...)
	if err != nil {
		r.awaitUnit(l, "", err)
		return fmt.Errorf("patching the %s of QueueUnit %s/%s: %w", part, l.unit.Namespace, l.unit.Name, err)
	}
	r.awaitUnit(l, patched.ResourceVersion, nil)
	return nil
}

// patchJob patches the job and awaits what came of it.
func (r *reconciler) patchJob(ctx context.Context, l *look, data []byte, subresources ...string) error {
	version := ""
	patched, err := r.jobs.Patch(ctx, l.key.Namespace, l.key.Name, data, subresources...)
	if err == nil {
		version = patched.GetResourceVersion()
	}
	r.memory.await(l.key, l.now, func(a *awaited) {
		a.job = after(l.job.GetResourceVersion(), version, err, a.job)
	})
	if err != nil {
		return fmt.Errorf("patching %s %s: %w", r.kind.Kind, l.key, err)
	}
	return nil
}

// awaitUnit awaits what came of a write on the unit.
func (r *reconciler) awaitUnit(l *look, written string, err error) {
	r.memory.await(l.key, l.now, func(a *awaited) {
		a.unit = after(l.unit.ResourceVersion, written, err, a.unit)
	})
}

// after is the version to await after a write on one that was seen: the one that
// came of it or, when there was a newer one, that.
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
