package reconciler

import (
	"context"
	"fmt"
	"sync"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"kube-queue.dev/kube-queue/pkg/follow"
)

// listedClaims are the claims, their templates and the classes of devices, from informers. They are watched only if
// devices of classes are counted. Resources that the API server does not serve do not delay the start.
type listedClaims struct {
	claims    resourcelisters.ResourceClaimLister
	templates resourcelisters.ResourceClaimTemplateLister
	classes   resourcelisters.DeviceClassLister
	factory   informers.SharedInformerFactory
	synced    []cache.InformerSynced
}

// newClaims calls changed with each claim, template or class that is created, changed or deleted, except claims that
// are created for pods.
func newClaims(kube kubernetes.Interface, changed func(metav1.Object)) (*listedClaims, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithTransform(slimClaim))
	api := factory.Resource().V1()
	claims, templates, classes := api.ResourceClaims(), api.ResourceClaimTemplates(), api.DeviceClasses()
	c := &listedClaims{claims: claims.Lister(), templates: templates.Lister(), classes: classes.Lister(), factory: factory}
	var warned sync.Once
	warn := func(ctx context.Context) {
		warned.Do(func() {
			klog.FromContext(ctx).Info("Warning: the API server does not serve the claims that setting devices.classes counts (Kubernetes 1.34 or later),"+
				" so jobs with claims wait with reason InvalidRequest", "groupVersion", resourcev1.SchemeGroupVersion)
		})
	}
	for _, informer := range []cache.SharedIndexInformer{claims.Informer(), templates.Informer(), classes.Informer()} {
		synced, err := follow.IfServed(informer, claimHandler(changed), warn)
		if err != nil {
			return nil, fmt.Errorf("watching ResourceClaims, ResourceClaimTemplates and DeviceClasses: %w", err)
		}
		c.synced = append(c.synced, synced)
	}
	return c, nil
}

// claimHandler ignores updates that change no spec, because the status of a claim changes
// whenever it is allocated or released.
func claimHandler(changed func(metav1.Object)) cache.ResourceEventHandler {
	byUser := func(object metav1.Object) {
		if !isOfPod(object) {
			changed(object)
		}
	}
	sameSpec := func(before, now metav1.Object) bool { return equality.Semantic.DeepEqual(specOf(before), specOf(now)) }
	return follow.Changes(sameSpec, byUser, byUser)
}

// isOfPod reports whether a claim was created for a pod from a template.
func isOfPod(object metav1.Object) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && owner.Kind == "Pod"
}

// claimOf returns the spec of a claim or of a template's claim.
func claimOf(obj any) *resourcev1.ResourceClaimSpec {
	switch o := obj.(type) {
	case *resourcev1.ResourceClaim:
		return &o.Spec
	case *resourcev1.ResourceClaimTemplate:
		return &o.Spec.Spec
	default:
		return nil
	}
}

// specOf returns the spec of a claim, of a template's claim, or of a class.
func specOf(obj any) any {
	if class, is := obj.(*resourcev1.DeviceClass); is {
		return class.Spec
	}
	return claimOf(obj)
}

// slimClaim keeps what determines how the devices of a claim count, and the name of the resource that a class provides.
func slimClaim(obj any) (any, error) {
	switch o := obj.(type) {
	case *resourcev1.ResourceClaim:
		o.Status = resourcev1.ResourceClaimStatus{}
	case *resourcev1.ResourceClaimTemplate:
		o.Spec.ObjectMeta = metav1.ObjectMeta{}
	case *resourcev1.DeviceClass:
		o.Spec = resourcev1.DeviceClassSpec{ExtendedResourceName: o.Spec.ExtendedResourceName}
	}
	if claim := claimOf(obj); claim != nil {
		slimDevices(&claim.Devices)
	}
	return slimClusterObject(obj)
}

func slimDevices(devices *resourcev1.DeviceClaim) {
	devices.Constraints, devices.Config = nil, nil
	for i := range devices.Requests {
		request := &devices.Requests[i]
		if exactly := request.Exactly; exactly != nil {
			exactly.Selectors, exactly.Tolerations = nil, nil
		}
		for j := range request.FirstAvailable {
			sub := &request.FirstAvailable[j]
			sub.Selectors, sub.Tolerations = nil, nil
		}
	}
}

func (c *listedCluster) ClaimTemplate(namespace, name string) (*resourcev1.ResourceClaimSpec, bool) {
	if c.claims == nil {
		return nil, false
	}
	template, err := c.claims.templates.ResourceClaimTemplates(namespace).Get(name)
	if err != nil {
		return nil, false
	}
	return &template.Spec.Spec, true
}

func (c *listedCluster) Claim(namespace, name string) (*resourcev1.ResourceClaimSpec, bool) {
	if c.claims == nil {
		return nil, false
	}
	claim, err := c.claims.claims.ResourceClaims(namespace).Get(name)
	if err != nil {
		return nil, false
	}
	return &claim.Spec, true
}
