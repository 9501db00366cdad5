package examples

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/pkg/generated/clientset/versioned"
)

// Clients are those of a user who submits examples and looks after them.
type Clients struct {
	Dynamic dynamic.Interface
	Kube    kubernetes.Interface
	Queue   versioned.Interface
}

// Submitted is an example in the cluster, or refused by it.
type Submitted struct {
	*Example
	Namespace string
	UID       types.UID
	Refused   string
}

// NewClients makes the clients.
func NewClients(config *rest.Config) (*Clients, error) {
	c := &Clients{}
	var err error
	if c.Dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	if c.Kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	c.Queue, err = versioned.NewForConfig(config)
	return c, err
}

// Submit creates the example in the namespace, with the opt-in mark.
func (c *Clients) Submit(ctx context.Context, example *Example, namespace string) (Submitted, error) {
	submitted := Submitted{Example: example, Namespace: namespace}
	if example.Object == nil {
		submitted.Refused = "it is no YAML: " + example.Fault
		return submitted, nil
	}
	object := example.Object.DeepCopy()
	object.SetNamespace(namespace)
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[framework.SuspendAnnotation] = "true"
	object.SetAnnotations(annotations)
	created, err := c.Dynamic.Resource(example.Kind.Resource).Namespace(namespace).Create(ctx, object, metav1.CreateOptions{})
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

// refusal is the first cause that the API server names. It adds one of no field
// where it did not look at all.
func refusal(err error) string {
	var causes []string
	if status, told := err.(apierrors.APIStatus); told && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			if cause.Field != "" && cause.Field != "<nil>" {
				causes = append(causes, oneLine(cause.Field+": "+cause.Message))
			}
		}
	}
	slices.Sort(causes)
	switch len(causes) {
	case 0:
		return "by the API server: " + oneLine(err.Error())
	case 1:
		return "by the API server: " + causes[0]
	default:
		return fmt.Sprintf("by the API server: %s; and %d more", causes[0], len(causes)-1)
	}
}

// EnsureNamespace makes a namespace and waits for nothing.
func (c *Clients) EnsureNamespace(ctx context.Context, name string) error {
	_, err := c.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// Units by the UID of their job.
func (c *Clients) Units(ctx context.Context) (map[types.UID]*v1alpha1.QueueUnit, error) {
	list, err := c.Queue.SchedulingV1alpha1().QueueUnits(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	units := make(map[types.UID]*v1alpha1.QueueUnit, len(list.Items))
	for i := range list.Items {
		units[list.Items[i].Spec.ConsumerRef.UID] = &list.Items[i]
	}
	return units, nil
}

// Warnings that a job's size is not known, by the UID of the job.
func (c *Clients) Warnings(ctx context.Context) (map[types.UID]string, error) {
	list, err := c.Kube.CoreV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + framework.EventUnsized})
	if err != nil {
		return nil, err
	}
	warnings := make(map[types.UID]string, len(list.Items))
	for _, event := range list.Items {
		warnings[event.InvolvedObject.UID] = event.Message
	}
	return warnings, nil
}
