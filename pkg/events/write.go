package events

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
)

// write creates the event, or counts its repetitions and renews it, and records it in e. created is
// whether the API server has accepted a new event.
func (w *Writer) write(ctx context.Context, key types.NamespacedName, e *entry) (created bool, err error) {
	events, now := w.client.Events(key.Namespace), metav1.NewTime(w.clock.Now())
	create := func() error {
		e.count = max(e.more, 1)
		_, err := events.Create(ctx, e.event.build(w.source, now, e.count), metav1.CreateOptions{})
		return err
	}
	e.revision = e.event.Revision
	if e.paced = repeats.Step(e.paced, now.Time); e.keep {
		e.paced.Until = now.Add(renewEvery)
	}
	if e.count == 0 {
		err := create()
		if !apierrors.IsAlreadyExists(err) || !e.keep && !e.repeat {
			return err == nil, ignoreExists(err)
		}
		// An earlier process has written it, and its age decides when to renew it.
		found, err := events.Get(ctx, key.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsForbidden(err):
			found = &corev1.Event{} // its age is unknown, so it is renewed now
		case err != nil:
			return false, err
		}
		e.count = max(found.Count, 1) // someone may have set it to 0, which means not written
		renewal := found.LastTimestamp.Add(renewEvery)
		if e.more == 0 && now.Time.Before(renewal) && found.Annotations[wellknown.RevisionAnnotation] == digest(e.revision) {
			if renewal.Before(e.paced.Until) { // false if it was written with a clock that was ahead
				e.paced.Until = renewal
			}
			return false, nil
		}
	}
	e.count += max(e.more, 1)
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{wellknown.RevisionAnnotation: lifecycle.OrNull(digest(e.revision))}},
		"count":    e.count, "lastTimestamp": now, "message": lifecycle.Shorten(e.event.Message), "type": e.event.Type,
	})
	if err != nil {
		return false, fmt.Errorf("renewing event %s: %w", key, err)
	}
	_, err = events.Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		err = create()
	}
	return false, ignoreExists(err)
}

func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// isPermanent reports whether a retry cannot succeed, because the namespace is deleted or being
// deleted or the API server rejects the event.
func isPermanent(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
