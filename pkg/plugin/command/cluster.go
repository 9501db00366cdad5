package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/generated/clientset/versioned"
	"kube-queue.dev/kube-queue/pkg/generated/clientset/versioned/scheme"
	"kube-queue.dev/kube-queue/pkg/plugin/reviews"
	"kube-queue.dev/kube-queue/pkg/plugin/units"
	"kube-queue.dev/kube-queue/pkg/quota/tree/manifest"
	"kube-queue.dev/kube-queue/pkg/spelling"
)

// cluster is the cluster of the caller.
type cluster struct {
	*shell
	// namespace is the namespace of the command.
	namespace string
	queue     versioned.Interface
	dynamic   dynamic.Interface
	core      kubernetes.Interface
	// warned is whether the user was told that answers are computed from the objects.
	warned bool
}

var (
	unitResource  = v1alpha1.SchemeGroupVersion.WithResource("queueunits")
	queueResource = v1alpha1.SchemeGroupVersion.WithResource("queues")
	treeResource  = quotav1beta1.SchemeGroupVersion.WithResource("elasticquotatrees")
)

// defaultServer is the server of a kubeconfig without a cluster.
const defaultServer = "localhost:8080"

var errNoCluster = errors.New("no cluster is selected: the kubeconfig has no current context; see kubectl config get-contexts")

// connect returns clients with the caller's kubeconfig and flags. It makes no request.
func (s *shell) connect() (*cluster, error) {
	if err := s.checkContext(); err != nil {
		return nil, err
	}
	config, err := s.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(config.Host, defaultServer) && (s.flags.APIServer == nil || *s.flags.APIServer == "") {
		return nil, errNoCluster
	}
	config = rest.CopyConfig(config)
	config.UserAgent = "kubectl-kube_queue/" + programVersion()
	config.QPS = -1 // a command makes few requests
	config.WarningHandler = rest.NewWarningWriter(s.Streams.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	c := &cluster{shell: s}
	if c.namespace, _, err = s.flags.ToRawKubeConfigLoader().Namespace(); err != nil {
		return nil, err
	}
	if c.queue, err = versioned.NewForConfig(config); err != nil {
		return nil, err
	}
	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	c.core, err = kubernetes.NewForConfig(config)
	return c, err
}

// checkContext returns an error if the kubeconfig does not have the context that the caller named.
func (s *shell) checkContext() error {
	if s.flags.Context == nil || *s.flags.Context == "" {
		return nil
	}
	raw, err := s.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return err
	}
	if _, known := raw.Contexts[*s.flags.Context]; !known {
		return fmt.Errorf("the kubeconfig has no context %q%s", *s.flags.Context, didYouMean(*s.flags.Context, slices.Sorted(maps.Keys(raw.Contexts))))
	}
	return nil
}

func (c *cluster) reviews() reviews.Asker { return reviews.Asker{Client: c.queue.VisibilityV1alpha1()} }

// pageSize is the number of units in one response of the API server.
const pageSize = 1000

// pages calls visit with each page of the selected units of a namespace, or of all if it is empty, until it returns
// false. The limit is that of the first page.
func (c *cluster) pages(ctx context.Context, namespace string, selected metav1.ListOptions, visit func(*units.Page) bool) error {
	if selected.Limit == 0 {
		selected.Limit = pageSize
	}
	for ; ; selected.Limit = pageSize {
		result := c.queue.SchedulingV1alpha1().RESTClient().Get().Resource(unitResource.Resource).NamespaceIfScoped(namespace, namespace != "").
			VersionedParams(&selected, scheme.ParameterCodec).Do(ctx)
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

// allUnits returns all units of a namespace, or of all namespaces if it is empty.
func (c *cluster) allUnits(ctx context.Context, namespace string) ([]units.Unit, error) {
	all := []units.Unit{}
	err := c.pages(ctx, namespace, metav1.ListOptions{}, func(page *units.Page) bool {
		all = append(all, page.Items...)
		return true
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// treeInUse returns the quota tree in use; nil if there is none.
func (c *cluster) treeInUse(ctx context.Context) (*unstructured.Unstructured, error) {
	list, err := c.dynamic.Resource(treeResource).Namespace(quotav1beta1.TreeNamespace).List(ctx, metav1.ListOptions{})
	if reviews.IsNotServed(err) {
		return nil, &notServed{treeResource.GroupResource(), err}
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

// checkNamespace returns an error if the namespace does not exist. If the caller may not read it, it returns none.
func (c *cluster) checkNamespace(ctx context.Context, namespace string) error {
	_, err := c.core.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	if !isMissingObject(err) {
		return nil
	}
	return fmt.Errorf("namespace %q does not exist%s", namespace, didYouMean(namespace, c.namespaces(ctx)))
}

// namespaces returns the names of all namespaces; nil if they cannot be listed.
func (c *cluster) namespaces(ctx context.Context) []string {
	list, err := c.core.CoreV1().Namespaces().List(ctx, metav1.ListOptions{Limit: suggestions})
	if err != nil {
		return nil
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// queues returns the Queues.
func (c *cluster) queues(ctx context.Context) ([]v1alpha1.Queue, error) {
	list, err := c.queue.SchedulingV1alpha1().Queues(c.queueNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// queueNames returns the names of the Queues; nil if they cannot be listed.
func (c *cluster) queueNames(ctx context.Context) []string {
	list, err := c.queues(ctx)
	if err != nil {
		return nil
	}
	var names []string
	for i := range list {
		names = append(names, list[i].Name)
	}
	return names
}

// noQueue returns the error about a Queue that does not exist.
func (c *cluster) noQueue(ctx context.Context, name string) error {
	return fmt.Errorf("queue %q does not exist in namespace %s%s", name, c.queueNamespace, didYouMean(name, c.queueNames(ctx)))
}

// didYouMean is the end of an error about a name that does not exist.
func didYouMean(word string, names []string) string {
	if meant := spelling.Nearest(word, names); meant != "" {
		return fmt.Sprintf("; did you mean %q?", meant)
	}
	return ""
}

// objects returns a client for objects of a kind in the namespace of the command.
func (c *cluster) objects(gvr schema.GroupVersionResource) dynamic.ResourceInterface {
	return c.dynamic.Resource(gvr).Namespace(c.namespace)
}
