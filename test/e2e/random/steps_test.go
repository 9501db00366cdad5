package random

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/e2e/random/oracle"
	"kube-queue.dev/kube-queue/test/e2e/random/plan"
	"kube-queue.dev/kube-queue/test/harness"
)

// patience is the timeout of all waits. It matters only for a failing test.
const patience = 2 * time.Minute

// run is the state of the test.
type run struct {
	t          *testing.T
	plan       plan.Plan
	places     []*harness.Env
	record     *oracle.Record
	controller *harness.Program
	extensions *harness.Program

	// at is the index of the current step, and begun has the start of each step.
	at    int
	begun []time.Time
	// killed is when the program that is down was killed, or zero if both are up. down has the times when the
	// controller was down.
	killed time.Time
	down   []oracle.Span
	// ending are the jobs whose pods are to end, and clearing those whose orphans are to be deleted,
	// with the time of the last attempt.
	ending   map[int]bool
	clearing map[int]time.Time
	// clusterless are the RayJobs whose cluster was deleted. The next cluster does not know the submitted job, which
	// therefore never ends.
	clusterless map[int]bool
	// ended are the pods and RayJobs that were told to end, by UID.
	ended map[types.UID]bool
	// done and refused count the steps that had an effect and those that the API server refused.
	done, refused map[plan.Op]int
	attackers     attackers
}

func (r *run) dynamic() dynamic.Interface { return r.places[0].Dynamic }

func (r *run) namespace(d drawn) string { return r.places[d.Place].Namespace }

func (r *run) job(number int) drawn { return drawn{r.plan.Job(number)} }

func (r *run) objects(d drawn) dynamic.ResourceInterface {
	return r.dynamic().Resource(d.kind().resource).Namespace(r.namespace(d))
}

// step executes a step. The API server may refuse a step that no longer makes sense, such as one for a failed job.
func (r *run) step(s plan.Step) {
	r.t.Helper()
	r.begun = append(r.begun, time.Now())
	r.tend()
	err := r.execute(s)
	switch {
	case err == nil:
		r.done[s.Op]++
	case apierrors.IsNotFound(err) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsConflict(err):
		r.t.Logf("step %d, %s: refused: %v", r.at, s, err)
		r.refused[s.Op]++
	default:
		r.t.Fatalf("step %d, %s: %v", r.at, s, err)
	}
}

func (r *run) execute(s plan.Step) error {
	switch s.Op {
	case plan.KillController:
		r.killed = time.Now()
		r.controller.Kill()
	case plan.StartController:
		r.controller.Start()
		r.down = append(r.down, oracle.Span{From: r.killed, To: time.Now()})
		r.killed = time.Time{}
	case plan.KillExtensions:
		r.killed = time.Now()
		r.extensions.Kill()
	case plan.Await:
		harness.Eventually(r.t, patience, "the status of the tree shows all pods", func() (bool, string) {
			r.tend()
			return r.record.Shows(tree)
		})
	case plan.StartExtensions:
		r.extensions.Start()
		r.killed = time.Time{}
	case plan.Try:
		r.settle(r.job(s.Job))
		return r.attack(r.job(s.Job), s.Attack)
	default:
		return r.change(s.Op, r.job(s.Job), s.Workers)
	}
	return nil
}

// change executes a step with a job.
func (r *run) change(op plan.Op, d drawn, workers int) error {
	switch op {
	case plan.Submit:
		return r.submit(d, nil)
	case plan.Copy:
		return r.copy(d)
	case plan.End:
		r.ending[d.Number] = true
		return nil
	case plan.Clear:
		r.clearing[d.Number] = time.Time{}
		return nil
	}
	r.settle(d)
	switch op {
	case plan.Scale:
		return r.scale(d, workers)
	case plan.Suspend, plan.Resume:
		field := map[string]any{}
		harness.Must(r.t, unstructured.SetNestedField(field, op == plan.Suspend, d.kind().suspend...))
		err := r.merge(d, field)
		if op == plan.Resume && apierrors.IsForbidden(err) { // an attack removed the annotation that holds the job
			err = r.delete(d, metav1.DeletePropagationBackground)
		}
		return err
	case plan.Delete:
		return r.delete(d, metav1.DeletePropagationBackground)
	case plan.Orphan:
		err := r.delete(d, metav1.DeletePropagationOrphan)
		if apierrors.IsForbidden(err) { // the namespace is managed
			err = r.delete(d, metav1.DeletePropagationBackground)
		}
		return err
	}
	return fmt.Errorf("no such step: %q", op)
}

// submit creates a job, with annotations in addition to its own.
func (r *run) submit(d drawn, annotations map[string]string) error {
	err := r.create(d, annotations, d.name())
	for i := 1; err == nil && d.Kind == podGroup && i < d.Workers; i++ {
		err = r.create(d, annotations, fmt.Sprintf("%s-%d", d.name(), i))
	}
	return err
}

// create creates the job, or a pod of a group.
func (r *run) create(d drawn, annotations map[string]string, name string) error {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(d.manifest()), &object.Object); err != nil {
		return fmt.Errorf("the manifest of %s: %w\n%s", d.name(), err, d.manifest())
	}
	all := object.GetAnnotations()
	if own := d.kind().annotations; own != nil {
		for key, value := range own(d) {
			all[key] = value
		}
	}
	for key, value := range annotations {
		all[key] = value
	}
	object.SetAnnotations(all)
	object.SetName(name)
	_, err := r.objects(d).Create(r.t.Context(), object, metav1.CreateOptions{})
	return err
}

// copy creates a job with the annotations that the original has now.
func (r *run) copy(d drawn) error {
	original := r.job(d.CopyOf)
	r.settle(original)
	object, err := r.objects(original).Get(r.t.Context(), original.name(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) { // it was deleted when it ended
		return r.submit(d, nil)
	}
	if err != nil {
		return err
	}
	return r.submit(d, object.GetAnnotations())
}

// scale sets the number of workers of a waiting or released job.
func (r *run) scale(d drawn, workers int) error {
	k := d.kind()
	unit := r.record.Unit(r.namespace(d), d.name())
	if k.scale != nil && (k.workers == "" || unit != nil && unit.Status.Phase.HoldsQuota()) {
		return k.scale(r, d, workers)
	}
	return r.replace(d, k.resource, d.name(), k.workers, workers)
}

// replace sets a number in an object.
func (r *run) replace(d drawn, resource schema.GroupVersionResource, name, pointer string, number int) error {
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": pointer, "value": number}})
	if err != nil {
		return err
	}
	_, err = r.dynamic().Resource(resource).Namespace(r.namespace(d)).Patch(r.t.Context(), name, types.JSONPatchType, patch, metav1.PatchOptions{})
	return err
}

// merge applies a merge patch to a job.
func (r *run) merge(d drawn, change map[string]any) error {
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = r.objects(d).Patch(r.t.Context(), d.name(), types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

func (r *run) delete(d drawn, policy metav1.DeletionPropagation) error {
	if d.kind().Gated {
		return r.objects(d).DeleteCollection(r.t.Context(), metav1.DeleteOptions{PropagationPolicy: &policy},
			metav1.ListOptions{LabelSelector: oracle.JobLabel + "=" + d.name()})
	}
	return r.objects(d).Delete(r.t.Context(), d.name(), metav1.DeleteOptions{PropagationPolicy: &policy})
}

// settle waits until the job waits with a reason, has pods after its release, has ended or is gone. It does not wait
// while a program is down.
func (r *run) settle(d drawn) {
	r.t.Helper()
	if !r.killed.IsZero() {
		return
	}
	harness.Eventually(r.t, patience, fmt.Sprintf("%s %s waits with a reason or has pods", d.Kind, d.name()), func() (bool, string) {
		r.tend()
		unit := r.record.Unit(r.namespace(d), d.name())
		if unit == nil {
			return r.record.Ended(r.namespace(d), d.name()) || !r.isQueued(d), "it has no unit"
		}
		pods := len(r.record.Pods(r.namespace(d), d.name()))
		s := unit.Status
		settled := s.Phase.Ended() || pods > 0 || !s.Phase.HoldsQuota() && s.Reason != ""
		return settled, fmt.Sprintf("%s %s: %s; %d pods", s.Phase, s.Reason, s.Message, pods)
	})
}

// isQueued reports whether a job needs a unit. A job that its owner has suspended is queued again when it is resumed.
// An attack may have deleted its unit by then.
func (r *run) isQueued(d drawn) bool {
	r.t.Helper()
	job, err := r.objects(d).Get(r.t.Context(), d.name(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false
	}
	harness.Must(r.t, err)
	suspended, _, err := unstructured.NestedBool(job.Object, d.kind().suspend...)
	harness.Must(r.t, err)
	return !suspended || job.GetAnnotations()[wellknown.SuspendAnnotation] != "false"
}

// tend ends the pods of jobs that should end, and deletes orphans. It is repeated because operators create some pods
// later.
func (r *run) tend() {
	r.t.Helper()
	r.weed()
	for number := range r.ending {
		d := r.job(number)
		if d.kind().resource == harness.RayJobs {
			r.endRayJob(d)
			continue
		}
		for _, p := range r.record.Pods(r.namespace(d), d.name()) {
			if !r.ended[p.UID] && p.Status.Phase == corev1.PodRunning {
				r.ended[p.UID] = true
				r.endNow(d, harness.Pods, p.Name)
			}
		}
	}
	for number, last := range r.clearing {
		d := r.job(number)
		left := len(r.record.Pods(r.namespace(d), d.name())) + len(r.record.Units(r.namespace(d), d.name()))
		if time.Since(last) > time.Second && left > 0 {
			r.clearing[number] = time.Now()
			r.places[d.Place].ClearOrphans(d.name())
		}
	}
}

// endRayJob ends the entrypoint, which ends its pods.
func (r *run) endRayJob(d drawn) {
	r.t.Helper()
	unit := r.record.Unit(r.namespace(d), d.name())
	if unit != nil && !r.ended[unit.UID] {
		r.ended[unit.UID] = true
		if r.clusterless[d.Number] {
			if err := r.delete(d, metav1.DeletePropagationBackground); !apierrors.IsNotFound(err) {
				harness.Must(r.t, err)
			}
			return
		}
		r.endNow(d, harness.RayJobs, d.name())
	}
}

func (r *run) endNow(d drawn, resource schema.GroupVersionResource, name string) {
	r.t.Helper()
	_, err := r.dynamic().Resource(resource).Namespace(r.namespace(d)).
		Patch(r.t.Context(), name, types.MergePatchType, []byte(harness.EndNow), metav1.PatchOptions{})
	if !apierrors.IsNotFound(err) {
		harness.Must(r.t, err)
	}
}

// finish waits until each job has ended or is gone, and no pod remains.
func (r *run) finish() {
	r.t.Helper()
	r.at = len(r.plan.Steps)
	left, since := -1, time.Now()
	harness.Eventually(r.t, 10*patience, "all jobs have ended", func() (bool, string) {
		r.tend()
		remaining := r.remaining()
		if len(remaining) != left {
			left, since = len(remaining), time.Now()
		}
		if time.Since(since) > patience {
			r.t.Fatalf("no job has ended for %v:\n%s", patience, describe(remaining))
		}
		return len(remaining) == 0, describe(remaining)
	})
}

func describe(remaining []string) string {
	slices.Sort(remaining)
	return fmt.Sprintf("%d remain: %q", len(remaining), remaining)
}

// remaining describes the jobs that have not ended.
func (r *run) remaining() (lines []string) {
	for _, job := range r.plan.Jobs {
		d := drawn{job}
		pods := len(r.record.Pods(r.namespace(d), d.name()))
		if pods > 0 {
			lines = append(lines, fmt.Sprintf("%s %s: %d pods", d.name(), d.Kind, pods))
		}
		for _, unit := range r.record.Units(r.namespace(d), d.name()) {
			if s := unit.Status; !s.Phase.Ended() {
				lines = append(lines, fmt.Sprintf("unit of %s %s: %s %s: %s", unit.Spec.ConsumerRef.Name, d.Kind, s.Phase, s.Reason, s.Message))
			}
		}
	}
	return lines
}
