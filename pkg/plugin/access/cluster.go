// Package access reads and changes a cluster with the rights of a caller, for the kubectl plugin and for the pages.
//
// It asks kube-queue-controller, with reviews, what waits and why. If the controller does not answer, it warns, and
// computes the answer from the objects that the caller may read. Changes are patches of jobs and Queues with the
// rights of the caller, never reviews.
package access

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/clientset"
	"kube-queue.dev/kube-queue/pkg/plugin/reviews"
	"kube-queue.dev/kube-queue/pkg/plugin/text"
	"kube-queue.dev/kube-queue/pkg/plugin/units"
	"kube-queue.dev/kube-queue/pkg/quota/tree/manifest"
	"kube-queue.dev/kube-queue/pkg/spelling"
)

// Cluster is a cluster with the rights of a caller.
type Cluster struct {
	// Namespace is the caller's namespace, and QueueNamespace the namespace of the Queues.
	Namespace, QueueNamespace string
	Queue                     *clientset.Clientset
	Dynamic                   dynamic.Interface
	Core                      kubernetes.Interface
	// Out gets a line for each change, and ErrOut gets the warnings.
	Out, ErrOut io.Writer
	Now         func() time.Time
	// MostUnits is the maximum number of units to read for one answer; 0 for no limit.
	MostUnits int
	// warned is true after the first call of WarnOnce.
	warned bool
}

// New returns a cluster with clients for the config. It makes no request. The caller sets the other fields.
func New(config *rest.Config) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // a command or a page makes few requests
	c := &Cluster{}
	var err error
	if c.Queue, err = clientset.NewForConfig(config); err != nil {
		return nil, err
	}
	if c.Dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	c.Core, err = kubernetes.NewForConfig(config)
	return c, err
}

// UnitResource is the resource of units.
var UnitResource = v1alpha1.SchemeGroupVersion.WithResource("queueunits")

var (
	queueResource = v1alpha1.SchemeGroupVersion.WithResource("queues")
	treeResource  = quotav1beta1.SchemeGroupVersion.WithResource("elasticquotatrees")
)

// say writes a line to Out, and warn writes one to ErrOut.
func (c *Cluster) say(format string, args ...any) {
	fmt.Fprintln(c.Out, text.Clean(fmt.Sprintf(format, args...)))
}

func (c *Cluster) warn(format string, args ...any) {
	fmt.Fprintln(c.ErrOut, text.Clean(fmt.Sprintf(format, args...)))
}

// Reviews returns a client that asks kube-queue-controller.
func (c *Cluster) Reviews() reviews.Asker { return reviews.Asker{Client: c.Queue.VisibilityV1alpha1()} }

// PageSize is the number of units in one response of the API server.
const PageSize = 1000

// Pages calls visit with each page of the selected units, until visit returns false. An empty namespace means all
// namespaces. The limit is the size of the first page.
func (c *Cluster) Pages(ctx context.Context, namespace string, selected metav1.ListOptions, visit func(*units.Page) bool) error {
	for selected.Limit = cmp.Or(selected.Limit, PageSize); ; selected.Limit = PageSize {
		result := c.Queue.SchedulingV1alpha1().RESTClient().Get().Resource(UnitResource.Resource).NamespaceIfScoped(namespace, namespace != "").
			VersionedParams(&selected, clientset.ParameterCodec).Do(ctx)
		err := result.Error()
		if apierrors.IsResourceExpired(err) {
			return fmt.Errorf("the units changed too much while they were read; try again: %w", err)
		} else if err != nil {
			return err
		}
		data, err := result.Raw()
		if err != nil {
			return err
		}
		page := &units.Page{}
		if err := json.Unmarshal(data, page); err != nil {
			return fmt.Errorf("reading the list of units: %w", err)
		}
		if selected.Continue = page.Metadata.Continue; !visit(page) || selected.Continue == "" {
			return nil
		}
	}
}

// errTooMany is the error of AllUnits if there are more than MostUnits.
var errTooMany = errors.New("there are too many units to read all of them")

// AllUnits returns all units of a namespace, or of all namespaces if it is empty.
func (c *Cluster) AllUnits(ctx context.Context, namespace string) ([]units.Unit, error) {
	all := []units.Unit{}
	err := c.Pages(ctx, namespace, metav1.ListOptions{}, func(page *units.Page) bool {
		all = append(all, page.Items...)
		return c.MostUnits == 0 || len(all) <= c.MostUnits
	})
	if err == nil && c.MostUnits > 0 && len(all) > c.MostUnits {
		err = errTooMany
	}
	if err != nil {
		return nil, err
	}
	return all, nil
}

// treeInUse returns the quota tree in use; nil if there is none.
func (c *Cluster) treeInUse(ctx context.Context) (*unstructured.Unstructured, error) {
	list, err := c.Dynamic.Resource(treeResource).Namespace(quotav1beta1.TreeNamespace).List(ctx, metav1.ListOptions{})
	if reviews.IsNotServed(err) {
		return nil, &NotServed{treeResource.GroupResource(), err}
	}
	if err != nil {
		return nil, err
	}
	trees := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		trees[i] = &list.Items[i]
	}
	return manifest.Oldest(trees), nil
}

// suggestions is the maximum number of names to read in order to suggest one.
const suggestions = 1000

// CheckNamespace returns an error if the namespace does not exist, but not if the caller may not read it.
func (c *Cluster) CheckNamespace(ctx context.Context, namespace string) error {
	_, err := c.Core.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	if !IsMissingObject(err) {
		return nil
	}
	return reviews.Missing(namespace, fmt.Sprintf("namespace %q does not exist%s", namespace, DidYouMean(namespace, c.Namespaces(ctx))))
}

// Namespaces returns the names of all namespaces; nil if they cannot be listed.
func (c *Cluster) Namespaces(ctx context.Context) []string {
	list, err := c.Core.CoreV1().Namespaces().List(ctx, metav1.ListOptions{Limit: suggestions})
	if err != nil {
		return nil
	}
	return namesOf(list.Items, func(n corev1.Namespace) string { return n.Name })
}

func namesOf[T any](list []T, name func(T) string) []string {
	var names []string
	for _, object := range list {
		names = append(names, name(object))
	}
	return names
}

// Queues returns the Queues.
func (c *Cluster) Queues(ctx context.Context) ([]v1alpha1.Queue, error) {
	list, err := c.Queue.SchedulingV1alpha1().Queues(c.QueueNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// QueueNames returns the names of the Queues; nil if they cannot be listed.
func (c *Cluster) QueueNames(ctx context.Context) []string {
	list, err := c.Queues(ctx)
	if err != nil {
		return nil
	}
	return namesOf(list, func(q v1alpha1.Queue) string { return q.Name })
}

// NoQueue returns the error for a Queue that does not exist.
func (c *Cluster) NoQueue(ctx context.Context, name string) error {
	return reviews.Missing(name, fmt.Sprintf("queue %q does not exist in namespace %s%s", name, c.QueueNamespace, DidYouMean(name, c.QueueNames(ctx))))
}

// DidYouMean returns the suffix of an error about an unknown name: a suggestion, if there is one.
func DidYouMean(word string, names []string) string {
	if meant := spelling.NearestPath(word, names); meant != "" {
		return fmt.Sprintf("; did you mean %q?", meant)
	}
	return ""
}

// objects returns a client for objects of a kind in the namespace of the command.
func (c *Cluster) objects(gvr schema.GroupVersionResource) dynamic.ResourceInterface {
	return c.Dynamic.Resource(gvr).Namespace(c.Namespace)
}
