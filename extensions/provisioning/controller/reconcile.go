package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/provisioning"
	"kube-queue.dev/kube-queue/pkg/events"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
)

// reconcile takes the next step for a unit. It returns when to check again.
func (c *Controller) reconcile(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	obj, exists, err := c.Units.GetIndexer().GetByKey(key.String())
	unit, isUnit := obj.(*v1alpha1.QueueUnit)
	// A unit that is being deleted takes its requests with it.
	if err != nil || !exists || !isUnit || unit.DeletionTimestamp != nil {
		return 0, err
	}
	requests, err := c.requestsOf(unit)
	if err != nil {
		return 0, err
	}
	switch {
	case !unit.Status.Phase.HoldsQuota():
		return 0, c.clear(ctx, unit, requests)
	case c.api.get() == apiUnknown, c.memory.of(unit.UID).passed == unit.ResourceVersion, lifecycle.EvictionOf(unit) != lifecycle.EvictionNone:
		return 0, nil // another event will follow
	}
	return c.decide(ctx, unit, requests)
}

// clear deletes what a unit without quota no longer needs. A request that failed stays as long as
// the unit is queued.
func (c *Controller) clear(ctx context.Context, unit *v1alpha1.QueueUnit, requests []*provisioning.Request) error {
	gone := slices.DeleteFunc(slices.Clone(requests), func(r *provisioning.Request) bool {
		return r.Failed() && !unit.Status.Phase.Ended()
	})
	if len(gone) == 0 && !c.memory.of(unit.UID).templates {
		return nil
	}
	// Autoscalers treat a request without its templates as failed, so the request goes first. The memory finds the
	// templates if their deletion fails.
	c.memory.setTemplates(unit.UID, true)
	if err := c.deleteRequests(ctx, gone); err != nil {
		return err
	}
	if err := c.deleteTemplates(ctx, unit, "", nil); err != nil {
		return err
	}
	c.memory.setTemplates(unit.UID, false)
	return nil
}

func (c *Controller) deleteRequests(ctx context.Context, requests []*provisioning.Request) error {
	for _, request := range requests {
		if request.DeletionTimestamp != nil {
			continue
		}
		if err := c.delete(ctx, c.api.requestsIn(), request); err != nil {
			return err
		}
	}
	return nil
}

// decide writes the entries of all checks of this controller in one patch.
func (c *Controller) decide(ctx context.Context, unit *v1alpha1.QueueUnit, requests []*provisioning.Request) (time.Duration, error) {
	now := c.Clock.Now()
	entries := slices.Clone(unit.Status.AdmissionChecks)
	var changed []provisioning.Answer
	var former []*provisioning.Request
	later := time.Duration(0)
	var missing error
	for i, entry := range entries {
		check, err := get[v1alpha1.AdmissionCheck](c.checks.GetStore(), entry.Name)
		if err != nil {
			return 0, err
		}
		if check == nil || check.Spec.ControllerName != wellknown.ProvisioningController {
			continue
		}
		answer, err := c.answer(ctx, unit, entry, check, requests)
		switch {
		case errors.Is(err, errNoAPI):
			answer, missing = noAPI(), err
			_, _ = c.servesRequests() // the next step and the cache use a version that is served now
		case err != nil:
			return 0, err
		}
		if answer.Updates != nil || answer.State == v1alpha1.CheckReady {
			former = append(former, formerOf(unit, entry.Name, requests)...)
		}
		next, differs := answer.Entry(entry, metav1.NewTime(now))
		if wait := c.memory.of(unit.UID).wrote.Add(detailEvery).Sub(now); differs && wait > 0 && answer.OnlyDetail(entry) {
			later = wait
			continue
		}
		if differs {
			entries[i], changed = next, append(changed, answer)
		}
	}
	if len(changed) > 0 {
		if err := c.patch(ctx, unit, entries, now); err != nil {
			return 0, err
		}
		c.record(unit, changed)
	}
	return later, errors.Join(missing, c.deleteRequests(ctx, former))
}

// formerOf returns the requests of earlier attempts.
func formerOf(unit *v1alpha1.QueueUnit, check string, requests []*provisioning.Request) []*provisioning.Request {
	return slices.DeleteFunc(slices.Clone(requests), func(r *provisioning.Request) bool {
		return r.Check() != check || r.Name == provisioning.RequestName(unit, check)
	})
}

// patch writes the entries if the unit has not changed.
func (c *Controller) patch(ctx context.Context, unit *v1alpha1.QueueUnit, entries []v1alpha1.AdmissionCheckState, now time.Time) error {
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": unit.ResourceVersion, "uid": unit.UID},
		"status":   map[string]any{"admissionChecks": entries},
	})
	if err != nil {
		return fmt.Errorf("encoding a patch of QueueUnit %s/%s: %w", unit.Namespace, unit.Name, err)
	}
	_, err = c.Client.Resource(queueUnits).Namespace(unit.Namespace).Patch(ctx, unit.Name, types.MergePatchType, data, metav1.PatchOptions{}, "status")
	switch {
	case err == nil, apierrors.IsConflict(err):
		// The cache will show a newer version, and the next step waits for it.
		c.memory.change(unit.UID, func(k *known) { k.passed, k.wrote = unit.ResourceVersion, now })
		if err == nil {
			return nil
		}
	case apierrors.IsNotFound(err):
		return nil // the unit is gone
	}
	return fmt.Errorf("patching the status of QueueUnit %s/%s: %w", unit.Namespace, unit.Name, err)
}

// record writes the events of answers on the job. An event of a request is written once.
func (c *Controller) record(unit *v1alpha1.QueueUnit, answers []provisioning.Answer) {
	job := unit.Spec.ConsumerRef
	for _, answer := range answers {
		if answer.Event == "" {
			continue
		}
		kind := corev1.EventTypeWarning
		if answer.Event == wellknown.EventProvisioningPending {
			kind = corev1.EventTypeNormal
		}
		c.Events.Write(events.Event{
			Object: corev1.ObjectReference{APIVersion: job.APIVersion, Kind: job.Kind, Namespace: unit.Namespace, Name: job.Name, UID: job.UID},
			Type:   kind, Reason: answer.Event, Message: answer.Message, Key: answer.Cause,
		})
	}
}
