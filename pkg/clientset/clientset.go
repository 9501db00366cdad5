// Package clientset has typed clients for the API groups of kube-queue, with the same methods as the clients of
// client-go.
//
//	client, err := clientset.NewForConfig(config)
//	unit, err := client.SchedulingV1alpha1().QueueUnits("team").Get(ctx, "job", metav1.GetOptions{})
//
// It is written by hand, because client-gen would generate seven times as many lines.
package clientset

import (
	"cmp"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	visibilityv1alpha1 "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
)

var (
	// Scheme has the types of all groups.
	Scheme = runtime.NewScheme()
	// ParameterCodec encodes the options of requests.
	ParameterCodec = runtime.NewParameterCodec(Scheme)

	codecs = serializer.NewCodecFactory(Scheme)
)

func init() {
	metav1.AddToGroupVersion(Scheme, schema.GroupVersion{Version: "v1"})
	utilruntime.Must(quotav1beta1.AddToScheme(Scheme))
	utilruntime.Must(schedulingv1alpha1.AddToScheme(Scheme))
	utilruntime.Must(visibilityv1alpha1.AddToScheme(Scheme))
}

// Clientset has a client for each group.
type Clientset struct {
	quota      *Quota
	scheduling *Scheduling
	visibility *Visibility
}

// NewForConfig returns clients that share a transport and a rate limit.
func NewForConfig(config *rest.Config) (*Clientset, error) {
	shared := *config
	shared.UserAgent = cmp.Or(shared.UserAgent, rest.DefaultKubernetesUserAgent())
	if shared.RateLimiter == nil && shared.QPS > 0 {
		if shared.Burst <= 0 {
			return nil, errors.New("burst is required to be greater than 0 when RateLimiter is not set and QPS is set to greater than 0")
		}
		shared.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(shared.QPS, shared.Burst)
	}
	shared.APIPath = "/apis"
	shared.NegotiatedSerializer = rest.CodecFactoryForGeneratedClient(Scheme, codecs).WithoutConversion()
	transport, err := rest.HTTPClientFor(&shared)
	if err != nil {
		return nil, err
	}
	of := func(version schema.GroupVersion) group {
		own := shared
		own.GroupVersion = &version
		client, failed := rest.RESTClientForConfigAndClient(&own, transport)
		err = cmp.Or(err, failed)
		return group{client}
	}
	c := &Clientset{quota: &Quota{of(quotav1beta1.SchemeGroupVersion)}, scheduling: &Scheduling{of(schedulingv1alpha1.SchemeGroupVersion)},
		visibility: &Visibility{of(visibilityv1alpha1.SchemeGroupVersion)}}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// NewForConfigOrDie returns clients, and panics if the config is invalid.
func NewForConfigOrDie(config *rest.Config) *Clientset {
	c, err := NewForConfig(config)
	utilruntime.Must(err)
	return c
}

// QuotaV1beta1 returns the client of quota trees.
func (c *Clientset) QuotaV1beta1() *Quota { return c.quota }

// SchedulingV1alpha1 returns the client of units, Queues and admission checks.
func (c *Clientset) SchedulingV1alpha1() *Scheduling { return c.scheduling }

// VisibilityV1alpha1 returns the client of reviews.
func (c *Clientset) VisibilityV1alpha1() *Visibility { return c.visibility }

type group struct{ client rest.Interface }

// RESTClient returns the client for other requests of the group.
func (g group) RESTClient() rest.Interface { return g.client }

// Quota is the client of the group of quota trees.
type Quota struct{ group }

// Scheduling is the client of the group of units.
type Scheduling struct{ group }

// Visibility is the client of the group of reviews, which can only be created.
type Visibility struct{ group }

// QueueUnits is the client of the units of a namespace.
type QueueUnits = *gentype.ClientWithList[*schedulingv1alpha1.QueueUnit, *schedulingv1alpha1.QueueUnitList]

// ElasticQuotaTrees returns the client of a namespace.
func (c *Quota) ElasticQuotaTrees(namespace string) *gentype.ClientWithList[*quotav1beta1.ElasticQuotaTree, *quotav1beta1.ElasticQuotaTreeList] {
	return objects[quotav1beta1.ElasticQuotaTree, quotav1beta1.ElasticQuotaTreeList](c.client, "elasticquotatrees", namespace)
}

// QueueUnits returns the client of a namespace, or of all namespaces if it is empty.
func (c *Scheduling) QueueUnits(namespace string) QueueUnits {
	return objects[schedulingv1alpha1.QueueUnit, schedulingv1alpha1.QueueUnitList](c.client, "queueunits", namespace)
}

// Queues returns the client of a namespace.
func (c *Scheduling) Queues(namespace string) *gentype.ClientWithList[*schedulingv1alpha1.Queue, *schedulingv1alpha1.QueueList] {
	return objects[schedulingv1alpha1.Queue, schedulingv1alpha1.QueueList](c.client, "queues", namespace)
}

// AdmissionChecks returns the client of the checks, which have no namespace.
func (c *Scheduling) AdmissionChecks() *gentype.ClientWithList[*schedulingv1alpha1.AdmissionCheck, *schedulingv1alpha1.AdmissionCheckList] {
	return objects[schedulingv1alpha1.AdmissionCheck, schedulingv1alpha1.AdmissionCheckList](c.client, "admissionchecks", "")
}

// QueueUnitReviews returns the client of a namespace.
func (c *Visibility) QueueUnitReviews(namespace string) *gentype.Client[*visibilityv1alpha1.QueueUnitReview] {
	return gentype.NewClient("queueunitreviews", c.client, ParameterCodec, namespace, func() *visibilityv1alpha1.QueueUnitReview { return &visibilityv1alpha1.QueueUnitReview{} })
}

// QueueReviews returns the client of a namespace.
func (c *Visibility) QueueReviews(namespace string) *gentype.Client[*visibilityv1alpha1.QueueReview] {
	return gentype.NewClient("queuereviews", c.client, ParameterCodec, namespace, func() *visibilityv1alpha1.QueueReview { return &visibilityv1alpha1.QueueReview{} })
}

// QuotaReviews returns the client of a namespace.
func (c *Visibility) QuotaReviews(namespace string) *gentype.Client[*visibilityv1alpha1.QuotaReview] {
	return gentype.NewClient("quotareviews", c.client, ParameterCodec, namespace, func() *visibilityv1alpha1.QuotaReview { return &visibilityv1alpha1.QuotaReview{} })
}

func objects[T, L any, Object interface {
	*T
	runtime.Object
	metav1.Object
}, List interface {
	*L
	runtime.Object
}](client rest.Interface, resource, namespace string) *gentype.ClientWithList[Object, List] {
	return gentype.NewClientWithList(resource, client, ParameterCodec, namespace,
		func() Object { return Object(new(T)) }, func() List { return List(new(L)) })
}
