package access

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	visibility "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/plugin/jobs"
	"kube-queue.dev/kube-queue/pkg/plugin/objects"
	"kube-queue.dev/kube-queue/pkg/plugin/reviews"
	"kube-queue.dev/kube-queue/pkg/plugin/units"
	"kube-queue.dev/kube-queue/pkg/plugin/web"
)

// Reader reads the cluster for one page or answer.
type Reader struct {
	*Cluster
	warnings *bytes.Buffer
}

// NewReader returns a reader that collects its warnings.
func (c *Cluster) NewReader() *Reader {
	r := &Reader{new(*c), &bytes.Buffer{}}
	r.ErrOut = r.warnings
	return r
}

// Warnings returns the warnings about the answers.
func (r *Reader) Warnings() []string {
	return slices.DeleteFunc(strings.Split(r.warnings.String(), "\n"), func(line string) bool { return line == "" })
}

func (r *Reader) Units(ctx context.Context, namespace string, spec visibility.QueueReviewSpec) (*visibility.QueueReviewStatus, error) {
	r.Namespace = namespace
	status, err := r.selectUnits(ctx, namespace, spec)
	if err == nil && spec.Show == visibility.ShowUnits && !spec.AllNamespaces && status.Total == 0 {
		err = r.CheckNamespace(ctx, namespace)
	}
	if err != nil {
		return nil, err
	}
	return status, nil
}

func (r *Reader) selectUnits(ctx context.Context, namespace string, spec visibility.QueueReviewSpec) (*visibility.QueueReviewStatus, error) {
	if spec.Show != "" && slices.ContainsFunc(spec.Phases, isEnded) {
		return r.unitsOfObjects(ctx, spec, errors.New("a review has no units that have ended"))
	}
	review, err := r.Reviews().QueuePage(ctx, namespace, spec)
	if unanswered := reviews.IsUnanswered(err); unanswered != nil {
		r.WarnOnce(unanswered)
		return r.unitsOfObjects(ctx, spec, unanswered)
	}
	if err != nil {
		return nil, err
	}
	return review.Status, nil
}

// isEnded reports whether a phase, in any letter case, is Succeeded or Failed.
func isEnded(phase string) bool {
	return strings.EqualFold(phase, string(v1alpha1.PhaseSucceeded)) || strings.EqualFold(phase, string(v1alpha1.PhaseFailed))
}

// mostOfObjects is the maximum number of units to read for a page.
const mostOfObjects = 5000

// unitsOfObjects answers the review from the objects.
func (r *Reader) unitsOfObjects(ctx context.Context, spec visibility.QueueReviewSpec, why error) (*visibility.QueueReviewStatus, error) {
	if spec.Show == "" {
		list, err := r.Queues(ctx)
		if err != nil {
			return nil, r.NoAnswer(why, err, "list Queues in namespace "+r.QueueNamespace)
		}
		status := objects.Queues(list, metav1.NewMicroTime(r.Now()))
		status.Queues = pageOf(status.Queues, spec)
		return status, nil
	}
	namespace := r.Namespace
	if spec.AllNamespaces {
		namespace = ""
	}
	list, err := r.firstUnits(ctx, namespace, &spec)
	if apierrors.IsForbidden(err) && namespace != "" {
		return nil, r.NoAnswer(why, err, "list QueueUnits")
	} else if apierrors.IsForbidden(err) {
		r.warn("You may not list units of all namespaces: only those of namespace %s are shown.", r.Namespace)
		list, err = r.firstUnits(ctx, r.Namespace, &spec)
	}
	if err != nil {
		return nil, r.NoAnswer(why, err, "list QueueUnits")
	}
	status := &visibility.QueueReviewStatus{ObservedTime: metav1.NewMicroTime(r.Now())}
	if spec.Queue == "" {
		for i := range list {
			status.Units = append(status.Units, objects.Summary(&list[i]))
		}
	} else {
		q, err := r.Queue.SchedulingV1alpha1().Queues(r.QueueNamespace).Get(ctx, spec.Queue, metav1.GetOptions{})
		switch {
		case IsMissingObject(err) && len(list) == 0:
			return nil, r.NoQueue(ctx, spec.Queue)
		case err != nil:
			q = nil // the client returns an empty one
		}
		objects.Order(status, list, spec.Queue, q, false, len(list))
		for i := range list {
			if list[i].Phase().Ended() {
				status.Units = append(status.Units, objects.Summary(&list[i]))
			}
		}
		if q != nil {
			status.Queues = objects.Queues([]v1alpha1.Queue{*q}, status.ObservedTime).Queues
		}
	}
	status.Total = int32(len(status.Units))
	if spec.Show == visibility.ShowGroups {
		groups := objects.Grouped(status.Units)
		status.Units, status.Groups, status.Total = nil, pageOf(groups, spec), int32(len(groups))
		return status, nil
	}
	status.Units = pageOf(status.Units, spec)
	return status, nil
}

// firstUnits reads the first units of a namespace, and returns those that the review selects.
func (r *Reader) firstUnits(ctx context.Context, namespace string, spec *visibility.QueueReviewSpec) (list []units.Unit, err error) {
	filter := units.Filter{Kinds: spec.Kinds, Phases: spec.Phases, Reasons: spec.Reasons}
	if spec.Queue != "" {
		filter.Queues = []string{spec.Queue}
	}
	read, complete := 0, true
	err = r.Pages(ctx, namespace, metav1.ListOptions{Limit: PageSize}, func(page *units.Page) bool {
		for i := range page.Items {
			if u := &page.Items[i]; filter.Selects(u) && (len(spec.Phases) > 0 || !u.Phase().Ended()) {
				list = append(list, *u)
			}
		}
		read += len(page.Items)
		complete = page.Metadata.Continue == ""
		return read < mostOfObjects
	})
	if err == nil && !complete {
		r.warn("Only the first %d units were read.", read)
	}
	units.Sort(list, units.ByName)
	return list, err
}

func pageOf[T any](list []T, spec visibility.QueueReviewSpec) []T {
	start := min(len(list), int(spec.Offset))
	return list[start:min(len(list), start+int(spec.Limit))]
}

func (r *Reader) Job(ctx context.Context, namespace, name string) (*web.Job, error) {
	r.Namespace, r.MostUnits = namespace, mostOfObjects
	unit, err := r.Queue.SchedulingV1alpha1().QueueUnits(namespace).Get(ctx, name, metav1.GetOptions{})
	if IsMissingObject(err) {
		return nil, reviews.Missing(name, fmt.Sprintf("unit %q does not exist in namespace %s: units are deleted with their jobs", name, namespace))
	}
	if err != nil {
		return nil, err
	}
	review, err := r.Answer(ctx, &Target{Unit: unit})
	if err != nil {
		return nil, err
	}
	return &web.Job{Unit: unit, Status: review.Status}, nil
}

func (r *Reader) Quotas(ctx context.Context, namespace string) (*visibility.QuotaReviewStatus, error) {
	r.Namespace = namespace
	review, err := r.ReadQuotas(ctx, "")
	if err != nil {
		return nil, err
	}
	return review.Status, nil
}

func (r *Reader) Tree(ctx context.Context) (string, error) {
	tree, err := r.treeInUse(ctx)
	if err != nil {
		return "", err
	}
	if tree == nil {
		return "", errNoTree
	}
	manifest := &unstructured.Unstructured{Object: map[string]any{"spec": tree.Object["spec"]}}
	manifest.SetAPIVersion(tree.GetAPIVersion())
	manifest.SetKind(tree.GetKind())
	manifest.SetName(tree.GetName())
	manifest.SetNamespace(tree.GetNamespace())
	data, err := yaml.Marshal(manifest.Object)
	return string(data), err
}

func (r *Reader) Simulate(ctx context.Context, namespace, manifests string) (*objects.Simulation, error) {
	r.Namespace = namespace
	q := r.NewQuestion(ctx)
	if err := q.Read("the manifests", strings.NewReader(manifests)); err != nil {
		return nil, err
	}
	return q.Simulate(ctx)
}

func (r *Reader) Advise(ctx context.Context, manifests string) (*objects.Advice, error) {
	q := r.NewQuestion(ctx)
	if err := q.Read("the manifests", strings.NewReader(manifests)); err != nil {
		return nil, err
	}
	return q.Advise(ctx)
}

// stops maps actions to the spec.stop that they set.
var stops = map[string]v1alpha1.QueueStop{web.Stop: v1alpha1.StopHold, web.Drain: v1alpha1.StopDrain, web.Resume: v1alpha1.StopNone}

func (r *Reader) May(ctx context.Context, a web.Action) bool {
	may := &authorizationv1.ResourceAttributes{Verb: "patch", Group: queueResource.Group, Resource: queueResource.Resource, Namespace: r.QueueNamespace, Name: a.Queue}
	if a.Unit != "" {
		t, err := r.targetOf(ctx, a)
		if err != nil {
			return false
		}
		ref := t.Unit.Spec.ConsumerRef
		may.Resource, may.Namespace, may.Name = UnitResource.Resource, a.Namespace, a.Unit
		if kind, known := jobs.KindOf(ref.APIVersion, ref.Kind); known {
			may.Group, may.Resource, may.Name = kind.Group, kind.Resource, ref.Name
		}
	}
	review, err := r.Core.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: may}}, metav1.CreateOptions{})
	return err == nil && review.Status.Allowed
}

func (r *Reader) Act(ctx context.Context, a web.Action) (string, error) {
	said := &bytes.Buffer{}
	r.Out = said
	err := r.act(ctx, a)
	return strings.TrimSpace(said.String()), err
}

func (r *Reader) act(ctx context.Context, a web.Action) error {
	o := &Change{DryRun: DryRunNone}
	if stop, is := stops[a.Do]; is {
		return r.SetStop(ctx, o, a.Queue, stop)
	}
	t, err := r.targetOf(ctx, a)
	if err != nil {
		return err
	}
	switch a.Do {
	case web.Pause:
		return r.PauseJob(ctx, o, t, true)
	case web.Unpause:
		return r.UnpauseJob(ctx, o, t)
	}
	priority, err := ParsePriority(a.Priority)
	if err != nil {
		return err
	}
	return r.SetPriority(ctx, o, t, priority)
}

// targetOf reads the unit of an action.
func (r *Reader) targetOf(ctx context.Context, a web.Action) (*Target, error) {
	r.Namespace = a.Namespace
	unit, err := r.unit(ctx, a.Unit)
	if err != nil {
		return nil, err
	}
	if unit == nil {
		return nil, r.noUnit(ctx, a.Unit)
	}
	t := &Target{Unit: unit}
	if unit.Status.Phase.Ended() {
		return nil, fmt.Errorf("%s has ended", t)
	}
	return t, nil
}
