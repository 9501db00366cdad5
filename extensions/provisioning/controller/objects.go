package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/provisioning"
)

// unitKind is the kind of the owner of requests and templates.
const unitKind = "QueueUnit"

// decode converts an object of a cache or an answer.
func decode[T any](obj any) (*T, error) {
	object, is := obj.(*unstructured.Unstructured)
	if !is {
		return nil, fmt.Errorf("a %T is no API object", obj)
	}
	into := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return into, nil
}

// get returns an object of a cluster-scoped cache; nil if it does not exist.
func get[T any](store cache.Store, name string) (*T, error) {
	obj, exists, err := store.GetByKey(name)
	if err != nil || !exists {
		return nil, err
	}
	return decode[T](obj)
}

// unitOf returns the unit that owns an object; nil if none does.
func unitOf(object metav1.Object) *metav1.OwnerReference {
	if owner := metav1.GetControllerOf(object); owner != nil && owner.Kind == unitKind {
		return owner
	}
	return nil
}

// unitUIDs is the index of requests by the unit that owns them.
func unitUIDs(obj any) ([]string, error) {
	if object, is := obj.(metav1.Object); is && unitOf(object) != nil {
		return []string{string(unitOf(object).UID)}, nil
	}
	return nil, nil
}

// requestsOf returns the requests of a unit that are cached.
func (c *Controller) requestsOf(unit *v1alpha1.QueueUnit) ([]*provisioning.Request, error) {
	objects, err := c.requests.GetIndexer().ByIndex(byUnit, string(unit.UID))
	if err != nil {
		return nil, err
	}
	var all []*provisioning.Request
	for _, obj := range objects {
		request, err := decode[provisioning.Request](obj)
		if err != nil {
			return nil, err
		}
		if request.Namespace == unit.Namespace {
			all = append(all, request)
		}
	}
	return all, nil
}

// errTaken means that the name is taken by an object that does not belong to the unit.
type errTaken struct{ kind, name, unit string }

func (e *errTaken) Error() string {
	return fmt.Sprintf("%s %s exists and does not belong to QueueUnit %s; delete it, because its name is needed", e.kind, e.name, e.unit)
}

// create creates an object of the unit, or returns it if the unit owns it already. If the object belongs to a former
// unit of the same name, create deletes it and returns an error, so that the step is retried.
func (c *Controller) create(ctx context.Context, unit *v1alpha1.QueueUnit, resource schema.GroupVersionResource, object any) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	wanted := &unstructured.Unstructured{Object: content}
	in := c.Client.Resource(resource).Namespace(unit.Namespace)
	created, err := in.Create(ctx, wanted, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return created, err
	}
	live, err := c.find(ctx, resource, unit.Namespace, wanted.GetName())
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%s %s existed and was deleted in the meantime", wanted.GetKind(), wanted.GetName())
	}
	if err != nil {
		return nil, err
	}
	switch owner := unitOf(live); {
	case owner == nil || owner.Name != unit.Name:
		return nil, &errTaken{wanted.GetKind(), wanted.GetName(), unit.Name}
	case owner.UID == unit.UID:
		return live, nil
	}
	if err := c.delete(ctx, resource, live); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%s %s of a former QueueUnit %s is being deleted", wanted.GetKind(), wanted.GetName(), unit.Name)
}

// find returns an object by its name. It lists, because the program is not allowed to get PodTemplates.
func (c *Controller) find(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	list, err := c.Client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s %s/%s: %w", resource.Resource, namespace, name, err)
	}
	for i := range list.Items {
		if list.Items[i].GetName() == name {
			return &list.Items[i], nil
		}
	}
	return nil, apierrors.NewNotFound(resource.GroupResource(), name)
}

// delete deletes an object, unless it is already gone or replaced.
func (c *Controller) delete(ctx context.Context, resource schema.GroupVersionResource, object metav1.Object) error {
	uid := object.GetUID()
	err := c.Client.Resource(resource).Namespace(object.GetNamespace()).Delete(ctx, object.GetName(),
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("deleting %s %s/%s: %w", resource.Resource, object.GetNamespace(), object.GetName(), err)
}

// deleteTemplates deletes the templates of a unit, of all checks or of one, except those to keep.
func (c *Controller) deleteTemplates(ctx context.Context, unit *v1alpha1.QueueUnit, check string, keep []*corev1.PodTemplate) error {
	kept := map[string]bool{}
	for _, template := range keep {
		kept[template.Name] = true
	}
	selector := wellknown.UnitUIDLabel + "=" + string(unit.UID)
	if check != "" {
		selector += "," + wellknown.CheckLabel + "=" + check
	}
	list, err := c.Client.Resource(podTemplates).Namespace(unit.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return fmt.Errorf("listing the PodTemplates of QueueUnit %s/%s: %w", unit.Namespace, unit.Name, err)
	}
	for i := range list.Items {
		template := &list.Items[i]
		owner := metav1.GetControllerOf(template)
		if owner == nil || owner.UID != unit.UID || kept[template.GetName()] {
			continue
		}
		if err := c.delete(ctx, podTemplates, template); err != nil {
			return err
		}
	}
	return nil
}

// liveRequest returns a request of the unit without the cache; nil if there is none.
func (c *Controller) liveRequest(ctx context.Context, unit *v1alpha1.QueueUnit, name string) (*provisioning.Request, error) {
	live, err := c.Client.Resource(c.api.requestsIn()).Namespace(unit.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ProvisioningRequest %s/%s: %w", unit.Namespace, name, err)
	}
	if owner := metav1.GetControllerOf(live); owner == nil || owner.UID != unit.UID {
		return nil, nil
	}
	return decode[provisioning.Request](live)
}
