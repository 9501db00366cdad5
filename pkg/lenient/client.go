package lenient

import (
	"context"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// Client reads and patches the objects of a kind. Namespace metav1.NamespaceAll means all namespaces.
type Client struct {
	kind Kind
	rest rest.Interface
}

// NewClient returns a Client that uses a REST client for the group and version of the kind.
func NewClient(rest rest.Interface, kind Kind) *Client {
	return &Client{kind: kind, rest: rest}
}

// NewForConfig returns a Client with its own REST client.
func NewForConfig(config *rest.Config, kind Kind) (*Client, error) {
	config = rest.CopyConfig(config)
	gv := kind.GroupVersion()
	config.GroupVersion, config.APIPath = &gv, "/apis"
	config.NegotiatedSerializer = kubescheme.Codecs.WithoutConversion() // for objects of other kinds, such as errors
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client for kind %s: %w", kind.Kind, err)
	}
	return NewClient(client, kind), nil
}

// Within returns a Lister of the objects in a namespace, or in all if it is empty.
func (c *Client) Within(namespace string) Lister { return within{c, namespace} }

type within struct {
	*Client
	namespace string
}

// Each lists the objects in the namespace.
func (w within) Each(ctx context.Context, _ string, opts metav1.ListOptions, each func(Object) error) (metav1.ListMeta, error) {
	return w.Client.Each(ctx, w.namespace, opts, each)
}

// Watch watches the objects in the namespace.
func (w within) Watch(ctx context.Context, _ string, opts metav1.ListOptions) (watch.Interface, error) {
	return w.Client.Watch(ctx, w.namespace, opts)
}

// Get returns an object of the type of the kind, or an Unreadable.
func (c *Client) Get(ctx context.Context, namespace, name string) (Object, error) {
	data, err := c.GetJSON(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return c.kind.Decode(data)
}

// GetJSON reads an object as the API server has it.
func (c *Client) GetJSON(ctx context.Context, namespace, name string) ([]byte, error) {
	return do(ctx, c.request("GET", namespace).Name(name))
}

// Patch sends a patch and returns the resourceVersion of the patched object. The rest of the response is not decoded.
func (c *Client) Patch(ctx context.Context, kind types.PatchType, namespace, name string, patch []byte, subresources ...string) (string, error) {
	data, err := do(ctx, c.request("PATCH", namespace).Name(name).SubResource(subresources...).SetHeader("Content-Type", string(kind)).Body(patch))
	if err != nil {
		return "", err
	}
	var answer struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := unmarshal(data, &answer); err != nil {
		return "", fmt.Errorf("reading the version of %s %s/%s: %w", c.kind.Kind, namespace, name, err)
	}
	return answer.Metadata.ResourceVersion, nil
}

// Each lists objects and calls each for one object after another while the response is still being
// received. An error of each ends the list.
func (c *Client) Each(ctx context.Context, namespace string, opts metav1.ListOptions, each func(Object) error) (metav1.ListMeta, error) {
	request := c.listRequest("GET", namespace, &opts)
	// The API server takes longer to compress the response than to send it.
	request.SetHeader("Accept-Encoding", "identity")
	body, err := request.Stream(ctx)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	defer body.Close()
	return c.kind.readList(body, each)
}

// Watch reports objects of the type of the kind, and Unreadables.
func (c *Client) Watch(ctx context.Context, namespace string, opts metav1.ListOptions) (watch.Interface, error) {
	opts.Watch = true
	body, err := c.listRequest("GET", namespace, &opts).Stream(ctx)
	switch {
	case err == nil:
		return watch.NewStreamWatcherWithLogger(klog.FromContext(ctx), newEvents(c.kind, body),
			apierrors.NewClientErrorReporter(http.StatusInternalServerError, "GET", "ClientWatchDecoding")), nil
	case utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err):
		return watch.NewEmptyWatch(), nil // like other clients, so that the watch is retried without a new list
	default:
		return nil, err
	}
}

// do returns the response of the API server. With Raw alone, an error from the status code would replace the error of
// the server, so that a missing object could not be distinguished from a kind that is not served.
func do(ctx context.Context, request *rest.Request) ([]byte, error) {
	result := request.Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

func (c *Client) request(verb, namespace string) *rest.Request {
	return c.rest.Verb(verb).NamespaceIfScoped(namespace, namespace != "").Resource(c.kind.Resource).
		SetHeader("Accept", runtime.ContentTypeJSON)
}

// listRequest returns a request for several objects.
func (c *Client) listRequest(verb, namespace string, opts *metav1.ListOptions) *rest.Request {
	request := c.request(verb, namespace).SpecificallyVersionedParams(opts, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"})
	if opts.TimeoutSeconds != nil {
		request.Timeout(time.Duration(*opts.TimeoutSeconds) * time.Second)
	}
	return request
}
