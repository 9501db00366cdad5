package access

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	visibility "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/plugin/jobs"
	"kube-queue.dev/kube-queue/pkg/plugin/objects"
	"kube-queue.dev/kube-queue/pkg/plugin/reviews"
	"kube-queue.dev/kube-queue/pkg/quota/tree/manifest"
)

// Question is what files contain that a user tries.
type Question struct {
	*Cluster
	measured *measured
	// Tree is the tree of the files; nil if they have none.
	Tree *unstructured.Unstructured
	// jobs are the jobs of the files as units, and invalid those that could never start.
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
	if q.Tree != nil {
		// Read as a user wrote it: the API server rejects fields that the controller ignores.
		if faults, warnings := manifest.CheckManifest(q.Tree); len(faults) > 0 {
			return &objects.Simulation{Faults: faults, Warnings: warnings}, nil
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
	return simulation, nil
}

// warnHidden warns that the caller may not read everything that determines the requests and priorities of the jobs.
func (q *Question) warnHidden() {
	if len(q.measured.hidden) > 0 {
		q.warn("You may not read %s: the requests or priorities of the jobs may differ.", strings.Join(slices.Sorted(maps.Keys(q.measured.hidden)), ", "))
	}
}

// Advise asks kube-queue-controller what would happen to each job if it alone were submitted now.
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

// trial reads the cluster.
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
	for next := ""; ; {
		page, err := q.Queue.SchedulingV1alpha1().QueueUnits("").List(ctx, metav1.ListOptions{Limit: PageSize, Continue: next})
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			page.Items[i].ManagedFields = nil // it is large, and not simulated
		}
		trial.Units = append(trial.Units, page.Items...)
		if next = page.Continue; next == "" {
			return trial, nil
		}
	}
}

// Read adds what YAML or JSON documents contain.
func (q *Question) Read(from io.Reader) error {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(from))
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = q.readDocument(document)
		}
		if err != nil {
			return fmt.Errorf("document %d: %w", number, err)
		}
	}
}

func (q *Question) readDocument(document []byte) error {
	data, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return fmt.Errorf("invalid YAML: %w", err)
	}
	if trimmed := bytes.TrimSpace(data); bytes.Equal(trimmed, []byte("null")) {
		return nil
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		return fmt.Errorf("not a Kubernetes object: %w", err)
	}
	return q.readObject(object)
}

func (q *Question) readObject(object *unstructured.Unstructured) error {
	if object.IsList() {
		list, err := object.ToList()
		if err != nil {
			return fmt.Errorf("reading a list: %w", err)
		}
		for i := range list.Items {
			if err := q.readObject(&list.Items[i]); err != nil {
				return err
			}
		}
		return nil
	}
	gvk := object.GroupVersionKind()
	adapter := jobs.AdapterOf(gvk)
	switch {
	case gvk.Kind == manifest.Kind && gvk.Group == manifest.Group:
		return q.setTree(object)
	case gvk.Group == v1alpha1.GroupName && gvk.Kind == "QueueUnit":
		return q.addUnit(object)
	case adapter == nil:
		return fmt.Errorf("%s (%s) %q is neither a quota tree nor a job that kube-queue knows; the kinds are %s", gvk.Kind, object.GetAPIVersion(), object.GetName(),
			strings.Join(jobs.KindNames(), ", "))
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
	unit := &v1alpha1.QueueUnit{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, unit); err != nil {
		return fmt.Errorf("unit %q: %w", object.GetName(), err)
	}
	q.add(unit.Name, cmp.Or(unit.Namespace, q.Namespace), unit.Spec)
	return nil
}

// add adds a job as a unit that was just created. The names of real units have no slash.
func (q *Question) add(name, namespace string, spec v1alpha1.QueueUnitSpec) {
	if spec.SubmissionTime == nil {
		spec.SubmissionTime = ptr.To(metav1.NewMicroTime(q.Now()))
	}
	q.jobs = append(q.jobs, v1alpha1.QueueUnit{Spec: spec, ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: namespace, UID: types.UID(fmt.Sprintf("simulated-%d", len(q.jobs))), ResourceVersion: "1", CreationTimestamp: metav1.NewTime(q.Now())}})
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
	switch {
	case observed.Foreign != "":
		q.warn("%s would not be queued: %s.", name, observed.Foreign)
	case !observed.Marked:
		q.warn("%s has no mark and would be queued only in a managed namespace.", name)
	}
	for _, warning := range []string{observed.Warning, observed.Ignored} {
		if warning != "" {
			q.warn("%s: %s", name, warning)
		}
	}
	if observed.Invalid != "" {
		q.invalid = append(q.invalid, objects.SimulatedJob{Name: name, Namespace: object.GetNamespace(), Reason: wellknown.ReasonInvalidRequest, Text: observed.Invalid})
		return nil
	}
	observed.Spec.ConsumerRef = v1alpha1.ConsumerReference{APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
	q.add(name, object.GetNamespace(), observed.Spec)
	return nil
}
