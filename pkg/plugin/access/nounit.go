package access

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/pkg/plugin/jobs"
	"kube-queue.dev/kube-queue/pkg/plugin/units"
)

// WhyNoUnit explains why a job has no unit.
func (c *Cluster) WhyNoUnit(ctx context.Context, job *unstructured.Unstructured) (string, error) {
	if job.GroupVersionKind() == podKind {
		if why, err := c.whyGated(ctx, job); why != "" || err != nil {
			return why, err
		}
		if group := job.GetLabels()[wellknown.PodGroupLabel]; group != "" {
			if why, err := c.whyNoGroup(ctx, group); why != "" || err != nil {
				return why, err
			}
		}
	}
	why, _, err := withoutUnit(job)
	return why, err
}

// whyNoGroup explains why a group of pods has no unit. It returns nothing if the group has a unit or does not exist,
// or if the caller may not list pods or units.
func (c *Cluster) whyNoGroup(ctx context.Context, name string) (string, error) {
	selector, err := labels.ValidatedSelectorFromSet(labels.Set{wellknown.GatedLabel: "true", wellknown.PodGroupLabel: name})
	if err != nil {
		return "", nil // no pod can have the label
	}
	adapter := registry.Pods()[1]
	known := false
	err = c.Pages(ctx, c.Namespace, metav1.ListOptions{}, func(page *units.Page) bool {
		known = slices.ContainsFunc(page.Items, func(u units.Unit) bool {
			return u.Spec.ConsumerRef.Kind == adapter.Kind().Kind && u.Spec.ConsumerRef.Name == name && !u.Phase().Ended()
		})
		return !known
	})
	if known || err != nil {
		return "", visible(err)
	}
	list, err := c.Core.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return "", visible(err)
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	group := framework.NewPodGroup(name, pods, "")
	if group == nil {
		return "", nil
	}
	why, soon := whyNoUnitOf(adapter, group)
	if _, err := adapter.Pods(group); soon && err != nil {
		why = err.Error()
	}
	return why, nil
}

// visible returns the error unless it is Forbidden.
func visible(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

// withoutUnit returns why a job has no unit, judging only from the job, and whether the job will probably get one.
func withoutUnit(job *unstructured.Unstructured) (why string, soon bool, err error) {
	if job.GroupVersionKind() == podKind {
		pod := new(corev1.Pod)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(job.Object, pod); err != nil {
			return "", false, fmt.Errorf("reading Pod %s: %w", job.GetName(), err)
		}
		owner := metav1.GetControllerOfNoCopy(pod)
		switch group := pod.Labels[wellknown.PodGroupLabel]; {
		case framework.IsGrowth(pod) && owner != nil:
			return fmt.Sprintf("the pod is a part of %[1]s %[2]s, whose growth is queued: ask why %[3]s/%[2]s", owner.Kind, owner.Name, strings.ToLower(owner.Kind)), false, nil
		case group != "" && pod.Labels[wellknown.GatedLabel] != "":
			return "the pod belongs to a group, which is queued as one job: ask why podgroup/" + group, false, nil
		}
		why, soon = whyNoUnitOf(registry.Pods()[0], framework.NewPodGroup(pod.Name, []*corev1.Pod{pod}, ""))
		return why, soon, nil
	}
	adapter := jobs.AdapterOf(job.GroupVersionKind())
	if adapter == nil {
		return "", false, fmt.Errorf("kube-queue queues no jobs of kind %s", job.GroupVersionKind())
	}
	data, err := job.MarshalJSON()
	if err != nil {
		return "", false, fmt.Errorf("reading %s %s: %w", job.GetKind(), job.GetName(), err)
	}
	decoded, err := decision.ReadAs(adapter, job.GroupVersionKind().Version).Decode(data)
	if err != nil {
		return "", false, fmt.Errorf("reading %s %s: %w", job.GetKind(), job.GetName(), err)
	}
	object, fault := decision.Readable(decoded)
	if object == nil {
		return "", false, fmt.Errorf("reading %s %s: %w", job.GetKind(), job.GetName(), fault)
	}
	why, soon = whyNoUnitOf(adapter, object)
	return why, soon, nil
}

func whyNoUnitOf(adapter framework.Adapter, job framework.Object) (why string, soon bool) {
	state := adapter.State(job)
	foreign := decision.Foreign(adapter.Kind(), job, state, decision.PartOf(adapter.Kind().GroupKind(), job))
	switch marked := decision.Marked(adapter.Kind(), job, state); {
	case job.GetDeletionTimestamp() != nil:
		return "the job is being deleted", false
	case state.End != nil:
		return "the job has ended", false
	case foreign != "":
		return "the job is not queued: " + foreign, false
	case !marked && state.Suspended:
		return fmt.Sprintf("the job is suspended and is not queued: it has no mark; to queue it, set the annotation %s to \"true\"", wellknown.SuspendAnnotation), false
	case !marked:
		return fmt.Sprintf("the job is not queued: it has no mark; a job is queued if it is created with the annotation %s: \"true\"", wellknown.SuspendAnnotation), false
	case !state.Suspended:
		return "the job was already running when kube-queue first saw it, and is not queued", false
	case job.GetAnnotations()[wellknown.SuspendAnnotation] == "":
		return fmt.Sprintf("the job is suspended; that is a mark only if its kind is in --enabled-extensions of job-extensions; to queue it in any case, set the annotation %s to \"true\";"+
			" if it has no unit 5s later, ask an administrator", wellknown.SuspendAnnotation), true
	default:
		return "the job has a mark and waits for job-extensions to create its unit; if there is none after 5s, its kind is not queued in this cluster, the API server refuses the unit, or job-extensions does not run: ask an administrator", true
	}
}
