package access

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// Values of Change.DryRun.
const (
	DryRunNone   = "none"
	DryRunClient = "client"
	DryRunServer = "server"
)

// Change holds the options of a change.
type Change struct{ DryRun string }

// fieldManager is the name of the plugin in managedFields.
const fieldManager = "kubectl-kube_queue"

func (o *Change) options() metav1.PatchOptions {
	options := metav1.PatchOptions{FieldManager: fieldManager}
	if o.DryRun == DryRunServer {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return options
}

// tried returns the suffix for the messages of a dry run.
func (o *Change) tried() string {
	if o.DryRun == DryRunNone {
		return ""
	}
	return " (dry run)"
}

// PauseJob pauses a job. If the job holds quota, it is paused only if evict is true.
func (c *Cluster) PauseJob(ctx context.Context, o *Change, t *Target, evict bool) error {
	version := ""
	if !evict {
		var err error
		if version, err = c.whileWaiting(ctx, t); err != nil {
			return err
		}
	}
	done, already := "paused", "already paused"
	if t.Unit != nil && t.Unit.Status.Phase.HoldsQuota() {
		done = "paused; it is being stopped"
	}
	return c.setActive(ctx, o, t, version, false, done, already)
}

// whileWaiting returns the version of the object to change, or an error if the job holds quota. The release of the job
// changes the version, so a patch with this version only succeeds while the job waits.
func (c *Cluster) whileWaiting(ctx context.Context, t *Target) (version string, err error) {
	job, err := c.readJob(ctx, t)
	if err != nil {
		return "", err
	}
	if t.Unit != nil { // it may have been read before the job
		fresh, err := c.unit(ctx, t.Unit.Name)
		if err != nil {
			return "", err
		}
		if fresh != nil {
			t.Unit = fresh
		}
		if t.Unit.Status.Phase.HoldsQuota() {
			return "", fmt.Errorf("%s holds quota and may be running: pausing it stops it and deletes its pods; repeat the command with --evict", t)
		}
	}
	if job != nil {
		return job.GetResourceVersion(), nil
	}
	return t.Unit.ResourceVersion, nil
}

// UnpauseJob undoes PauseJob.
func (c *Cluster) UnpauseJob(ctx context.Context, o *Change, t *Target) error {
	if t.Unit != nil && t.Unit.Status.Reason == wellknown.ReasonSuspendedByUser && ptr.Deref(t.Unit.Spec.Active, true) {
		return fmt.Errorf("%s is not paused: it was suspended by hand; unsuspend it, which queues it again", t)
	}
	return c.setActive(ctx, o, t, "", true, "unpaused: it is queued again", "not paused")
}

// setActive pauses or unpauses a job. A non-empty version is a precondition. already describes a job that needs no
// change.
func (c *Cluster) setActive(ctx context.Context, o *Change, t *Target, version string, active bool, done, already string) error {
	job, err := c.readJob(ctx, t)
	if err != nil {
		return err
	}
	if job == nil {
		return c.setActiveByHand(ctx, o, t, version, active, done, already)
	}
	if err := queued(t); err != nil {
		return err
	}
	value, set := job.GetAnnotations()[wellknown.ActiveAnnotation]
	is := !set || value == "true"
	if is == active && (t.Unit == nil || ptr.Deref(t.Unit.Spec.Active, true) == active) {
		c.say("%s is %s", t, already)
		return nil
	}
	return c.annotate(ctx, o, t, version, wellknown.ActiveAnnotation, strconv.FormatBool(active), done)
}

// queued returns an error if kube-queue will not queue the job, because the change would have no effect.
func queued(t *Target) error {
	if t.Unit != nil || t.Job == nil {
		return nil
	}
	why, soon, err := withoutUnit(t.Job)
	if err != nil || soon {
		return err
	}
	return fmt.Errorf("%s has no QueueUnit, and the change would have no effect: %s", t, why)
}

// setActiveByHand is setActive for a unit that a user created.
func (c *Cluster) setActiveByHand(ctx context.Context, o *Change, t *Target, version string, active bool, done, already string) error {
	if ptr.Deref(t.Unit.Spec.Active, true) == active {
		c.say("unit %s is %s", t.Unit.Name, already)
		return nil
	}
	return c.patch(ctx, o, UnitResource, t.Unit.Namespace, t.Unit.Name, map[string]any{
		"metadata": guard(t.Unit.UID, version), "spec": map[string]any{"active": active}}, "unit "+t.Unit.Name, done)
}

// annotate sets an annotation of a job. A non-empty version is a precondition.
func (c *Cluster) annotate(ctx context.Context, o *Change, t *Target, version, key, value, done string) error {
	metadata := guard(t.Job.GetUID(), version)
	metadata["annotations"] = map[string]string{key: value}
	return c.patch(ctx, o, t.Resource, c.Namespace, t.Job.GetName(), map[string]any{"metadata": metadata}, t.String(), done)
}

// guard returns metadata that makes the API server refuse the patch if the object was recreated or, with a version,
// changed.
func guard(uid types.UID, version string) map[string]any {
	if version == "" {
		return map[string]any{"uid": uid}
	}
	return map[string]any{"uid": uid, "resourceVersion": version}
}

// patch changes an object and prints done. what names the object in messages.
func (c *Cluster) patch(ctx context.Context, o *Change, resource schema.GroupVersionResource, namespace, name string, content map[string]any, what, done string) error {
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	if o.DryRun != DryRunClient {
		_, err := c.Dynamic.Resource(resource).Namespace(namespace).Patch(ctx, name, types.MergePatchType, data, o.options())
		if apierrors.IsConflict(err) {
			return fmt.Errorf("%s was changed or created again at the same time; repeat the command: %w", what, err)
		} else if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	c.say("%s %s%s", what, done, o.tried())
	return nil
}

// ParsePriority reads a priority that a user wrote.
func ParsePriority(value string) (int32, error) {
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("the priority must be an integer from -2147483648 to 2147483647, not %q", value)
	}
	return int32(n), nil
}

// SetPriority sets the priority of a job.
func (c *Cluster) SetPriority(ctx context.Context, o *Change, t *Target, priority int32) error {
	job, err := c.readJob(ctx, t)
	if err != nil {
		return err
	}
	if err := queued(t); err != nil {
		return err
	}
	if job == nil {
		return fmt.Errorf("unit %s was not created for a job of kube-queue, and its priority cannot be changed", t.Unit.Name)
	}
	value := strconv.Itoa(int(priority))
	if t.Job.GetAnnotations()[wellknown.PriorityAnnotation] == value {
		c.say("%s already has priority %s", t, value)
	} else if err := c.annotate(ctx, o, t, "", wellknown.PriorityAnnotation, value, "has priority "+value+was(t)); err != nil {
		return err
	}
	c.warnOfCap(ctx, t.Unit, priority)
	return nil
}

func was(t *Target) string {
	old, set := t.Job.GetAnnotations()[wellknown.PriorityAnnotation]
	if _, err := ParsePriority(old); set && err != nil {
		return fmt.Sprintf(" (was %q)", old)
	}
	if t.Unit == nil {
		return ""
	}
	return fmt.Sprintf(" (was %d)", t.Unit.Spec.Priority)
}

// warnOfCap warns if the maxPriority of the queue lowers the priority.
func (c *Cluster) warnOfCap(ctx context.Context, unit *v1alpha1.QueueUnit, priority int32) {
	if unit == nil || unit.Status.Queue == "" {
		return
	}
	queue, err := c.Queue.SchedulingV1alpha1().Queues(c.QueueNamespace).Get(ctx, unit.Status.Queue, metav1.GetOptions{})
	if err == nil && queue.Spec.MaxPriority != nil && priority > *queue.Spec.MaxPriority {
		c.warn("The maxPriority of queue %s is %d: the job is ordered as if it had this priority.", queue.Name, *queue.Spec.MaxPriority)
	}
}

// stopDone is the message for each value of spec.stop, after it was set.
var stopDone = map[v1alpha1.QueueStop]string{
	v1alpha1.StopDrain: "stopped; jobs that hold quota are being stopped",
	v1alpha1.StopHold:  "stopped; running jobs continue",
	v1alpha1.StopNone:  "resumed",
}

// SetStop sets spec.stop of a Queue.
func (c *Cluster) SetStop(ctx context.Context, o *Change, name string, stop v1alpha1.QueueStop) error {
	queue, err := c.Queue.SchedulingV1alpha1().Queues(c.QueueNamespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case IsMissingObject(err):
		return c.NoQueue(ctx, name)
	case err == nil && (queue.Spec.Stop == stop || queue.Spec.Stop == "" && stop == v1alpha1.StopNone):
		c.say("queue %s already has spec.stop %s", name, stop)
		return nil
	case err != nil && !apierrors.IsForbidden(err): // a caller who may not read it may still change it
		return err
	}
	err = c.patch(ctx, o, queueResource, c.QueueNamespace, name, map[string]any{"spec": map[string]any{"stop": stop}}, "queue "+name, stopDone[stop])
	if IsMissingObject(err) {
		return c.NoQueue(ctx, name)
	}
	return err
}
