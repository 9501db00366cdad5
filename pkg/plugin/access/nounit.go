package access

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/plugin/jobs"
)

// WhyNoUnit explains why a job has no unit, only from the job.
func WhyNoUnit(job *unstructured.Unstructured) (string, error) {
	adapter := jobs.AdapterOf(job.GroupVersionKind())
	if adapter == nil {
		return "", fmt.Errorf("kube-queue queues no jobs of kind %s", job.GroupVersionKind())
	}
	data, err := job.MarshalJSON()
	if err != nil {
		return "", fmt.Errorf("reading %s %s: %w", job.GetKind(), job.GetName(), err)
	}
	decoded, err := decision.ReadAs(adapter, job.GroupVersionKind().Version).Decode(data)
	if err != nil {
		return "", fmt.Errorf("reading %s %s: %w", job.GetKind(), job.GetName(), err)
	}
	object, fault := decision.Readable(decoded)
	if object == nil {
		return "", fmt.Errorf("reading %s %s: %w", job.GetKind(), job.GetName(), fault)
	}
	state := adapter.State(object)
	foreign := decision.Foreign(adapter.Kind(), object, state, decision.PartOf(adapter.Kind().GroupKind(), object))
	switch marked := decision.Marked(adapter.Kind(), object, state); {
	case job.GetDeletionTimestamp() != nil:
		return "the job is being deleted", nil
	case state.End != nil:
		return "the job has ended", nil
	case foreign != "":
		return "the job is not queued: " + foreign, nil
	case !marked && state.Suspended:
		return fmt.Sprintf("the job is suspended and is not queued: it has no mark; to queue it, set the annotation %s to \"true\"", wellknown.SuspendAnnotation), nil
	case !marked:
		return fmt.Sprintf("the job is not queued: it has no mark; a job is queued if it is created with the annotation %s: \"true\"", wellknown.SuspendAnnotation), nil
	case !state.Suspended:
		return "the job was already running when kube-queue first saw it, and is not queued", nil
	case job.GetAnnotations()[wellknown.SuspendAnnotation] == "":
		return fmt.Sprintf("the job is suspended; that is a mark only if its kind is in --enabled-extensions of job-extensions; to queue it in any case, set the annotation %s to \"true\";"+
			" if it has no unit 5s later, ask an administrator", wellknown.SuspendAnnotation), nil
	default:
		return "the job has a mark and waits for job-extensions to create its unit; if there is none after 5s, its kind is not queued in this cluster, the API server refuses the unit, or job-extensions does not run: ask an administrator", nil
	}
}
