package access

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/extensions/pod"
	"kube-queue.dev/kube-queue/pkg/plugin/jobs"
	"kube-queue.dev/kube-queue/pkg/plugin/reviews"
	"kube-queue.dev/kube-queue/pkg/plugin/units"
)

// Target is what the user named: a unit, a job without a unit, or a job with its unit.
type Target struct {
	Unit *v1alpha1.QueueUnit
	// Job is the job, and Resource its resource, if they were read.
	Job      *unstructured.Unstructured
	Resource schema.GroupVersionResource
}

// String returns the kind and the name of the job, such as "job.batch/train".
func (t *Target) String() string {
	if t.Job != nil {
		return nameOf(t.Job.GroupVersionKind().GroupKind(), t.Job.GetName())
	}
	gv, _ := schema.ParseGroupVersion(t.Unit.Spec.ConsumerRef.APIVersion)
	return nameOf(gv.WithKind(t.Unit.Spec.ConsumerRef.Kind).GroupKind(), JobName(t.Unit))
}

// JobName returns the name of the job as commands show it.
func JobName(unit *v1alpha1.QueueUnit) string {
	if unit.Spec.Growth {
		return unit.Spec.ConsumerRef.Name + decision.GrowthSuffix
	}
	return unit.Spec.ConsumerRef.Name
}

func nameOf(kind schema.GroupKind, name string) string {
	return jobs.Kind{GroupKind: kind}.String() + "/" + name
}

// Find finds what the user named.
func (c *Cluster) Find(ctx context.Context, ref jobs.Reference) (*Target, error) {
	if len(ref.Kinds) == 0 {
		unit, err := c.unit(ctx, ref.Name)
		if unit != nil || err != nil {
			return &Target{Unit: unit}, err
		}
		if ref.Unit {
			return nil, c.noUnit(ctx, ref.Name)
		}
		return c.findByName(ctx, ref)
	}
	var found []*Target
	var hidden error
	for _, kind := range ref.Kinds {
		t, err := c.findJob(ctx, kind, ref.Name)
		if apierrors.IsForbidden(err) {
			hidden = err
		} else if err != nil {
			return nil, err
		}
		if t != nil {
			found = append(found, t)
		}
	}
	if len(found) == 0 {
		t, err := c.findByName(ctx, ref)
		if err != nil && hidden != nil {
			err = fmt.Errorf("%w; a job without a unit cannot be seen: %w", err, hidden)
		}
		return t, err
	}
	if len(found) > 1 {
		return nil, ambiguous(ref, found)
	}
	unit, err := c.unitOf(ctx, found[0].Job)
	found[0].Unit = unit
	return found[0], err
}

// unit reads a unit; nil if it does not exist.
func (c *Cluster) unit(ctx context.Context, name string) (*v1alpha1.QueueUnit, error) {
	unit, err := c.Queue.SchedulingV1alpha1().QueueUnits(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	if IsMissingObject(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return unit, nil
}

// unitOf reads the unit of a job; nil if it has none.
func (c *Cluster) unitOf(ctx context.Context, job *unstructured.Unstructured) (*v1alpha1.QueueUnit, error) {
	return c.unit(ctx, decision.UnitName(job.GetKind(), job.GetName(), job.GetUID()))
}

// findJob reads a job of a kind in the first version that the API server serves; nil if there is none.
func (c *Cluster) findJob(ctx context.Context, kind jobs.Kind, name string) (*Target, error) {
	for _, version := range kind.Versions {
		gvr := schema.GroupVersionResource{Group: kind.Group, Version: version, Resource: kind.Resource}
		job, err := c.objects(gvr).Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil:
			return &Target{Job: job, Resource: gvr}, nil
		case reviews.IsNotServed(err):
		case IsMissingObject(err):
			return nil, nil
		default:
			return nil, err
		}
	}
	return nil, nil
}

// findByName finds a unit by the name of its job. If there is none, it looks for jobs without a unit.
func (c *Cluster) findByName(ctx context.Context, ref jobs.Reference) (*Target, error) {
	var found []*units.Unit
	var near []string
	err := c.Pages(ctx, c.Namespace, metav1.ListOptions{}, func(page *units.Page) bool {
		for i := range page.Items {
			u := &page.Items[i]
			isKind := isOfKind(u, ref)
			switch {
			case u.JobName() == ref.Name && isKind:
				found = append(found, u)
			case isKind && len(near) < suggestions:
				near = append(near, u.JobName())
			}
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	// The unit of a deleted job can remain next to the unit of the job that replaced it.
	if current := slices.DeleteFunc(slices.Clone(found), func(u *units.Unit) bool { return u.Phase().Ended() }); len(current) > 0 {
		found = current
	}
	// A job can have several units for growth. If only one waits, the user means that one.
	if !slices.ContainsFunc(found, func(u *units.Unit) bool { return !u.Spec.Growth }) && len(found) > 1 {
		waits := slices.DeleteFunc(slices.Clone(found), func(u *units.Unit) bool { return !u.Phase().Waits() })
		if len(waits) == 1 {
			c.warn("%d units are named %q; this is %s, the only one that waits.", len(found), ref.Name, waits[0].Metadata.Name)
			found = waits
		}
	}
	switch len(found) {
	case 0:
		return c.findWithoutUnit(ctx, ref, near)
	case 1:
		unit, err := c.unit(ctx, found[0].Metadata.Name)
		if unit == nil && err == nil {
			err = fmt.Errorf("unit %q was deleted just now", found[0].Metadata.Name)
		}
		return &Target{Unit: unit}, err
	}
	names := namesOf(found, func(u *units.Unit) string { return u.Job() + " (unit " + u.Metadata.Name + ")" })
	slices.Sort(names)
	return nil, fmt.Errorf("%d units in namespace %s are named %q: %s; name one of these units", len(found), c.Namespace, ref.Name, strings.Join(names, ", "))
}

// isOfKind reports whether the job of a unit has a kind of the reference, or the reference has no kind.
func isOfKind(u *units.Unit, ref jobs.Reference) bool {
	gv, _ := schema.ParseGroupVersion(u.Spec.ConsumerRef.APIVersion)
	kind := gv.WithKind(u.Spec.ConsumerRef.Kind).GroupKind()
	return len(ref.Kinds) == 0 || slices.ContainsFunc(ref.Kinds, func(k jobs.Kind) bool { return k.GroupKind == kind })
}

// IsNamed reports whether the reference names a unit or its job.
func IsNamed(u *units.Unit, ref jobs.Reference) bool {
	if ref.Unit || len(ref.Kinds) == 0 && u.Metadata.Name == ref.Name {
		return u.Metadata.Name == ref.Name
	}
	return u.JobName() == ref.Name && isOfKind(u, ref)
}

// findWithoutUnit finds a job without a unit by its name alone.
func (c *Cluster) findWithoutUnit(ctx context.Context, ref jobs.Reference, near []string) (*Target, error) {
	var found []*Target
	if len(ref.Kinds) == 0 {
		for _, kind := range jobs.Kinds() {
			t, err := c.findJob(ctx, kind, ref.Name)
			if err != nil && !apierrors.IsForbidden(err) {
				return nil, err
			}
			if t != nil {
				found = append(found, t)
			}
		}
	}
	switch len(found) {
	case 0:
		if err := c.CheckNamespace(ctx, c.Namespace); err != nil {
			return nil, err
		}
		if len(ref.Kinds) == 0 || ref.Kinds[0].Group == pod.Group { // groups are not objects
			why, err := c.whyNoGroup(ctx, ref.Name)
			if err == nil && why != "" {
				err = fmt.Errorf("podgroup/%s has no QueueUnit: %s", ref.Name, why)
			}
			if err != nil {
				return nil, err
			}
		}
		return nil, fmt.Errorf("no job or unit %q in namespace %s%s", ref.Text, c.Namespace, DidYouMean(ref.Name, near))
	case 1:
		return found[0], nil
	}
	return nil, ambiguous(ref, found)
}

func ambiguous(ref jobs.Reference, found []*Target) error {
	names := namesOf(found, (*Target).String)
	slices.Sort(names)
	return fmt.Errorf("%q may be any of %s; name one of them", ref.Text, strings.Join(names, ", "))
}

func (c *Cluster) noUnit(ctx context.Context, name string) error {
	if err := c.CheckNamespace(ctx, c.Namespace); err != nil {
		return err
	}
	var near []string
	list, err := c.Queue.SchedulingV1alpha1().QueueUnits(c.Namespace).List(ctx, metav1.ListOptions{Limit: suggestions})
	if err == nil {
		near = namesOf(list.Items, func(u v1alpha1.QueueUnit) string { return u.Name })
	}
	return reviews.Missing(name, fmt.Sprintf("unit %q does not exist in namespace %s%s", name, c.Namespace, DidYouMean(name, near)))
}

// readJob reads the job of a unit unless it was already read. It returns nil if the job is gone or kube-queue does not
// queue its kind, and an error if the unit cannot be changed through a job.
func (c *Cluster) readJob(ctx context.Context, t *Target) (*unstructured.Unstructured, error) {
	if t.Job != nil || t.Unit == nil {
		return t.Job, nil
	}
	ref := t.Unit.Spec.ConsumerRef
	if t.Unit.Spec.Growth {
		return nil, fmt.Errorf("unit %s is for pods that %s %s has added, and only the whole job can be changed; name %s/%s", t.Unit.Name, ref.Kind, ref.Name, strings.ToLower(ref.Kind), ref.Name)
	}
	kind, known := jobs.KindOf(ref.APIVersion, ref.Kind)
	if !known {
		return nil, nil
	}
	if kind.Group == pod.Group { // a group is not an object
		return nil, fmt.Errorf("%s is a group of pods; annotate its pods: kubectl annotate pods -n %s -l %s=%s --overwrite %s=false pauses it, true unpauses it, and %s=N sets its priority",
			t, t.Unit.Namespace, wellknown.PodGroupLabel, ref.Name, wellknown.ActiveAnnotation, wellknown.PriorityAnnotation)
	}
	found, err := c.findJob(ctx, kind, ref.Name)
	if err != nil || found == nil {
		return nil, err
	}
	if ref.UID != "" && found.Job.GetUID() != ref.UID {
		return nil, fmt.Errorf("the job of unit %s is gone; the %s %s that exists now is another job, with a unit of its own", t.Unit.Name, ref.Kind, ref.Name)
	}
	t.Job, t.Resource = found.Job, found.Resource
	return t.Job, nil
}
