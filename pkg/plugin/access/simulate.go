package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	visibility "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/pkg/controller/codec"
	"kube-queue.dev/kube-queue/pkg/lenient"
	"kube-queue.dev/kube-queue/pkg/migration"
	"kube-queue.dev/kube-queue/pkg/plugin/jobs"
	"kube-queue.dev/kube-queue/pkg/plugin/objects"
	"kube-queue.dev/kube-queue/pkg/plugin/reviews"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/quota/tree/manifest"
)

// Question is a tree and jobs that a user tries, read from files.
type Question struct {
	*Cluster
	measured *measured
	// Tree is the tree of the files; nil if they have none.
	Tree *unstructured.Unstructured
	// jobs are the jobs of the files as units, and invalid those that can never start.
	jobs    []v1alpha1.QueueUnit
	invalid []objects.SimulatedJob
}

// NewQuestion returns a question without a tree and jobs.
func (c *Cluster) NewQuestion(ctx context.Context) *Question {
	return &Question{Cluster: c, measured: c.measure(ctx)}
}

// Simulate returns what would happen.
func (q *Question) Simulate(ctx context.Context) (*objects.Simulation, error) {
	if q.Tree == nil && len(q.jobs)+len(q.invalid) == 0 {
		return nil, errors.New("the files have no ElasticQuotaTree and no job")
	}
	q.warnHidden()
	var warnings []string
	if q.Tree != nil {
		// Check the tree as written: the API server rejects fields that the controller ignores.
		var faults []string
		if faults, warnings = manifest.CheckManifest(q.Tree); len(faults) > 0 {
			return &objects.Simulation{Faults: faults, Warnings: warnings}, nil
		}
		for _, warning := range tree.Warnings(manifest.Root(q.Tree), tree.Cluster{HasNamespace: q.hasNamespace(ctx)}) {
			if !slices.Contains(warnings, warning) {
				warnings = append(warnings, warning)
			}
		}
	}
	trial, err := q.trial(ctx)
	if err != nil {
		return nil, err
	}
	simulation, err := objects.Simulate(*trial, q.Now())
	if err != nil {
		return nil, err
	}
	simulation.Jobs = append(simulation.Jobs, q.invalid...)
	if q.Tree != nil {
		simulation.Warnings = warnings
	}
	return simulation, nil
}

// hasNamespace returns whether a namespace exists; nil if the caller may not list namespaces.
func (q *Question) hasNamespace(ctx context.Context) func(string) bool {
	list, err := q.Core.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	names := namesOf(list.Items, func(n corev1.Namespace) string { return n.Name })
	return func(name string) bool { return slices.Contains(names, name) }
}

// warnHidden warns about objects that affect the requests or priorities of the jobs but were not read.
func (q *Question) warnHidden() {
	if q.measured.claims {
		q.warn("The devices of ResourceClaims are not counted: setting devices.classes of job-extensions is not known here.")
	}
	if len(q.measured.hidden) > 0 {
		q.warn("You may not read %s: the requests or priorities of the jobs may differ.", strings.Join(slices.Sorted(maps.Keys(q.measured.hidden)), ", "))
	}
}

// Advise asks kube-queue-controller what would happen to each job if only that job were submitted now.
func (q *Question) Advise(ctx context.Context) (*objects.Advice, error) {
	switch {
	case q.Tree != nil:
		return nil, errors.New("the files have an ElasticQuotaTree; to try it, use simulate")
	case len(q.jobs)+len(q.invalid) == 0:
		return nil, errors.New("the files have no job")
	}
	q.warnHidden()
	advice := &objects.Advice{}
	for i := range q.jobs {
		job := &q.jobs[i]
		review, err := q.Reviews().NewUnit(ctx, job.Namespace, &job.Spec)
		if reviews.IsUnanswered(err) != nil {
			return nil, fmt.Errorf("%w; only kube-queue-controller knows when jobs start", err)
		} else if err != nil {
			return nil, fmt.Errorf("%s in namespace %s: %w", job.Name, job.Namespace, err)
		}
		advice.Jobs = append(advice.Jobs, objects.AdvisedJob{Namespace: job.Namespace, Name: job.Name, Spec: job.Spec, Status: *review.Status})
	}
	for _, job := range q.invalid {
		advice.Jobs = append(advice.Jobs, objects.AdvisedJob{Namespace: job.Namespace, Name: job.Name, Status: visibility.QueueUnitReviewStatus{
			ObservedTime: metav1.NewMicroTime(q.Now()), Phase: string(v1alpha1.PhaseEnqueued), Reason: job.Reason, Message: job.Text}})
	}
	return advice, nil
}

func (q *Question) trial(ctx context.Context) (*objects.Trial, error) {
	trial := &objects.Trial{Jobs: q.jobs}
	tree, err := q.treeInUse(ctx)
	if err != nil {
		return nil, err
	}
	if tree != nil {
		trial.Quotas, _ = objects.Tree(tree)
	}
	switch {
	case q.Tree != nil:
		tree = q.Tree
	case tree == nil:
		return nil, errNoTree
	}
	trial.Root = manifest.Root(tree)
	if trial.Queues, err = q.Queues(ctx); err != nil {
		return nil, err
	}
	trial.Units, err = q.completeUnits(ctx)
	return trial, err
}

// completeUnits reads all units. It warns about units that a user has written in a wrong format, and leaves out the
// malformed parts.
func (q *Question) completeUnits(ctx context.Context) (all []v1alpha1.QueueUnit, err error) {
	client := lenient.NewClient(q.Queue.SchedulingV1alpha1().RESTClient(), codec.UnitKind())
	options := metav1.ListOptions{Limit: PageSize}
	for {
		page, err := client.Each(ctx, "", options, func(object lenient.Object) error {
			if unreadable, is := object.(*lenient.Unreadable); is {
				q.warn("Unit %s/%s is not read completely: %v.", unreadable.Namespace, unreadable.Name, unreadable.Err)
				object = unreadable.Partial
			}
			if unit, is := object.(*v1alpha1.QueueUnit); is {
				unit.ManagedFields = nil // large, and not simulated
				all = append(all, *unit)
				return q.checkDouble(unit)
			}
			return nil
		})
		if err == nil && q.MostUnits > 0 && len(all) > q.MostUnits {
			err = fmt.Errorf("%w; run kubectl kube-queue simulate, which has no limit", errTooMany)
		}
		if err != nil {
			return nil, err
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return all, nil
		}
	}
}

// checkDouble warns if a job of the files exists, because its unit counts too. It returns an error if a unit of the
// files exists.
func (q *Question) checkDouble(unit *v1alpha1.QueueUnit) error {
	for i := range q.jobs {
		job := &q.jobs[i]
		switch {
		case job.Namespace != unit.Namespace:
		case job.Name == unit.Name:
			return fmt.Errorf("unit %s/%s of the files exists in the cluster; leave it out, or change its name", unit.Namespace, unit.Name)
		case job.Spec.ConsumerRef.Kind == unit.Spec.ConsumerRef.Kind && job.Spec.ConsumerRef.Name == unit.Spec.ConsumerRef.Name && !unit.Status.Phase.Ended():
			q.warn("%s in namespace %s exists, and counts in addition to the one in the files.", job.Name, unit.Namespace)
		}
	}
	return nil
}

// Read adds the contents of a YAML or JSON file. Messages show its name.
func (q *Question) Read(name string, from io.Reader) error {
	documents, err := migration.Read(name, from)
	if err != nil {
		return err
	}
	for _, d := range documents {
		if err := q.add(d.Object); err != nil {
			return fmt.Errorf("%s: %w", d.Source, err)
		}
	}
	return nil
}

func (q *Question) add(object *unstructured.Unstructured) error {
	gvk := object.GroupVersionKind()
	switch {
	case gvk.Kind == manifest.Kind && gvk.Group == manifest.Group:
		return q.setTree(object)
	case gvk.Group == v1alpha1.GroupName && gvk.Kind == "QueueUnit":
		return q.addUnit(object)
	case jobs.AdapterOf(gvk) == nil:
		known := slices.DeleteFunc(jobs.KindNames(), func(kind string) bool {
			return slices.ContainsFunc(registry.Pods(), func(a framework.Adapter) bool { return a.Kind().Kind == kind })
		})
		return fmt.Errorf("%s (%s) %q is neither a quota tree nor a job that can be tried; the kinds are %s", gvk.Kind, object.GetAPIVersion(), object.GetName(), strings.Join(known, ", "))
	}
	return q.addJob(object)
}

func (q *Question) setTree(object *unstructured.Unstructured) error {
	if q.Tree != nil {
		return errors.New("the files have more than one ElasticQuotaTree, and a cluster uses only one")
	}
	q.Tree = object
	return nil
}

// addUnit adds a unit that a user creates.
func (q *Question) addUnit(object *unstructured.Unstructured) error {
	data, err := object.MarshalJSON()
	if err != nil {
		return fmt.Errorf("unit %q: %w", object.GetName(), err)
	}
	decoded, err := codec.UnitKind().Decode(data)
	if unreadable, is := decoded.(*lenient.Unreadable); is {
		err = unreadable.Err
	}
	if err != nil {
		return fmt.Errorf("unit %q: %w", object.GetName(), err)
	}
	unit := decoded.(*v1alpha1.QueueUnit)
	q.addNew(unit.Name, cmp.Or(unit.Namespace, q.Namespace), unit.Spec)
	return nil
}

// addNew adds a job as a new unit. The name of a job has a slash, so it differs from the names of real units. Repeated
// names, as with generateName, are numbered.
func (q *Question) addNew(name, namespace string, spec v1alpha1.QueueUnitSpec) {
	taken := func(name string) bool {
		return slices.ContainsFunc(q.jobs, func(u v1alpha1.QueueUnit) bool { return u.Name == name && u.Namespace == namespace })
	}
	for unique, n := name, 2; ; n++ {
		if !taken(unique) {
			name = unique
			break
		}
		unique = fmt.Sprintf("%s (%d)", name, n)
	}
	if spec.SubmissionTime == nil {
		spec.SubmissionTime = new(metav1.NewMicroTime(q.Now()))
	}
	q.jobs = append(q.jobs, v1alpha1.QueueUnit{Spec: spec, ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: namespace, UID: types.UID(fmt.Sprintf("simulated-%d", len(q.jobs))), ResourceVersion: "1", CreationTimestamp: metav1.NewTime(q.Now())}})
}

// managedLabel returns the value of the label that makes a namespace managed; empty if it cannot be read.
func (q *Question) managedLabel(name string) string {
	namespace, err := q.Core.CoreV1().Namespaces().Get(q.measured.ctx, name, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	return namespace.Labels[wellknown.ManagedKey]
}

// addJob adds a job as job-extensions would read it.
func (q *Question) addJob(object *unstructured.Unstructured) error {
	accessor, err := apimeta.Accessor(object)
	if err != nil {
		return err
	}
	if accessor.GetName() == "" {
		accessor.SetName(cmp.Or(strings.TrimSuffix(accessor.GetGenerateName(), "-"), "job"))
	}
	if accessor.GetNamespace() == "" {
		accessor.SetNamespace(q.Namespace)
	}
	data, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	adapter := jobs.AdapterOf(object.GroupVersionKind())
	observed, err := decision.Observe(adapter, data, nil, q.measured)
	if err != nil {
		return fmt.Errorf("%s %q: %w", object.GetKind(), object.GetName(), err)
	}
	name := strings.ToLower(object.GetKind()) + "/" + object.GetName()
	managed := ""
	if observed.Foreign == "" && !observed.Marked {
		managed = q.managedLabel(object.GetNamespace())
	}
	almost, ignored := decision.AlmostMarked(object), decision.IgnoredKeys(object)
	switch {
	case observed.Foreign != "":
		q.warn("%s would not be queued: %s.", name, observed.Foreign)
		ignored = ""
	case observed.Marked, managed == "true":
	case almost != "": // as in the event NotQueued
		q.warn("%s: Not queued: %s", name, almost)
		if ignored == almost {
			ignored = ""
		}
	case managed != "" && managed != "false":
		q.warn("%s has no mark, and its namespace is not managed, because label %s of namespace %s is %q and not \"true\".", name, wellknown.ManagedKey, object.GetNamespace(), managed)
	default:
		q.warn("%s has no mark and would be queued only in a managed namespace.", name)
	}
	if ignored != "" { // as in the event KeyIgnored
		ignored = "Ignored: " + ignored
	}
	for _, warning := range []string{ignored, observed.Warning, observed.Ignored} {
		if warning != "" {
			q.warn("%s: %s", name, warning)
		}
	}
	if observed.Invalid != "" {
		q.invalid = append(q.invalid, objects.SimulatedJob{Name: name, Namespace: object.GetNamespace(), Reason: wellknown.ReasonInvalidRequest, Text: observed.Invalid})
		return nil
	}
	observed.Spec.ConsumerRef = v1alpha1.ConsumerReference{APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
	q.addNew(name, object.GetNamespace(), observed.Spec)
	return nil
}
