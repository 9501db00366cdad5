package examples

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/harness"
)

// Submitted is an example after an attempt to create it. Refused is the error of the API server.
type Submitted struct {
	*Example
	Namespace string
	UID       types.UID
	Refused   string
}

// Submit creates the example in the namespace, with the mark.
func Submit(ctx context.Context, l *harness.Env, example *Example, namespace string) (Submitted, error) {
	submitted := Submitted{Example: example, Namespace: namespace}
	if example.Object == nil {
		submitted.Refused = "invalid YAML: " + example.Fault
		return submitted, nil
	}
	object := example.Object.DeepCopy()
	object.SetNamespace(namespace)
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[wellknown.SuspendAnnotation] = "true"
	object.SetAnnotations(annotations)
	created, err := l.Dynamic.Resource(object.GroupVersionKind().GroupVersion().WithResource(example.Kind.Resource)).Namespace(namespace).Create(ctx, object, metav1.CreateOptions{})
	switch {
	case err == nil:
		submitted.UID = created.GetUID()
		return submitted, nil
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err):
		submitted.Refused = refusal(err)
		return submitted, nil
	default:
		return submitted, fmt.Errorf("creating %s: %w", example.File, err)
	}
}

// refusal returns the first cause that the API server reports. Causes without a field are
// skipped: they only report that the validation ended early.
func refusal(err error) string {
	var causes []string
	if status, ok := err.(apierrors.APIStatus); ok && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			if cause.Field != "" && cause.Field != "<nil>" {
				causes = append(causes, oneLine(cause.Field+": "+cause.Message))
			}
		}
	}
	slices.Sort(causes)
	switch len(causes) {
	case 0:
		return "rejected by the API server: " + oneLine(err.Error())
	case 1:
		return "rejected by the API server: " + causes[0]
	default:
		return fmt.Sprintf("rejected by the API server: %s; and %d more", causes[0], len(causes)-1)
	}
}

// Units returns all units by the UID of their job.
func Units(ctx context.Context, l *harness.Env) (map[types.UID]*v1alpha1.QueueUnit, error) {
	list, err := l.Queue.SchedulingV1alpha1().QueueUnits(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	units := make(map[types.UID]*v1alpha1.QueueUnit, len(list.Items))
	for i := range list.Items {
		units[list.Items[i].Spec.ConsumerRef.UID] = &list.Items[i]
	}
	return units, nil
}

// Warnings returns the warnings about an unknown size by the UID of the job.
func Warnings(ctx context.Context, l *harness.Env) (map[types.UID]string, error) {
	list, err := l.Kube.CoreV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + string(wellknown.EventUnsized)})
	if err != nil {
		return nil, err
	}
	warnings := make(map[types.UID]string, len(list.Items))
	for _, event := range list.Items {
		warnings[event.InvolvedObject.UID] = event.Message
	}
	return warnings, nil
}
