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

// Client reads and patches the objects of a kind. Namespace metav1.NamespaceAll
// stands for all.
type Client struct {
	kind Kind
	rest rest.Interface
}

// NewClient shares a REST client of the kind's group and version.
func NewClient(rest rest.Interface, kind Kind) *Client {
	return &Client{kind: kind, rest: rest}
}

// NewForConfig makes a REST client of its own.
func NewForConfig(config *rest.Config, kind Kind) (*Client, error) {
	config = rest.CopyConfig(config)
	gv := kind.GroupVersion()
	config.GroupVersion, config.APIPath = &gv, "/apis"
	config.NegotiatedSerializer = kubescheme.Codecs.WithoutConversion() // for what is not of the kind: errors
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client for kind %s: %w", kind.Kind, err)
	}
	return NewClient(client, kind), nil
}

// Get returns an object of the kind's type, or an Unreadable.
func (c *Client) Get(ctx context.Context, namespace, name string) (Object, error) {
	return c.one(ctx, c.request("GET", namespace).Name(name))
}

// Patch sends a merge patch and returns the object as it is then.
func (c *Client) Patch(ctx context.Context, namespace, name string, patch []byte, subresources ...string) (Object, error) {
	return c.one(ctx, c.patch(namespace, name, patch, subresources))
}

// PatchVersion is Patch for who wants to know nothing of the object but its
// resourceVersion: the rest of the answer is not decoded.
func (c *Client) PatchVersion(ctx context.Context, namespace, name string, patch []byte, subresources ...string) (string, error) {
	data, err := do(ctx, c.patch(namespace, name, patch, subresources))
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

func (c *Client) patch(namespace, name string, patch []byte, subresources []string) *rest.Request {
	return c.request("PATCH", namespace).Name(name).SubResource(subresources...).
		SetHeader("Content-Type", string(types.MergePatchType)).Body(patch)
}

// Each lists objects and gives one after the other to each while the others are still on
// their way; an error of each ends it.
func (c *Client) Each(ctx context.Context, namespace string, opts metav1.ListOptions, each func(Object) error) (metav1.ListMeta, error) {
	request := c.asked("GET", namespace, &opts)
	// To compress it takes the API server longer than to send it.
	request.SetHeader("Accept-Encoding", "identity")
	body, err := request.Stream(ctx)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	defer body.Close()
	return c.kind.readList(body, each)
}

// Watch reports objects of the kind's type, and of Unreadables.
func (c *Client) Watch(ctx context.Context, namespace string, opts metav1.ListOptions) (watch.Interface, error) {
	opts.Watch = true
	body, err := c.asked("GET", namespace, &opts).Stream(ctx)
	switch {
	case err == nil:
		return watch.NewStreamWatcherWithLogger(klog.FromContext(ctx), newEvents(c.kind, body),
			apierrors.NewClientErrorReporter(http.StatusInternalServerError, "GET", "ClientWatchDecoding")), nil
	case utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err):
		return watch.NewEmptyWatch(), nil // as other clients do: it is watched again, and nothing listed
	default:
		return nil, err
	}
}

func (c *Client) one(ctx context.Context, request *rest.Request) (Object, error) {
	data, err := do(ctx, request)
	if err != nil {
		return nil, err
	}
	return c.kind.Decode(data)
}

// do returns what the API server answers. Raw alone would hide the server's own
// word for an error behind one that is made from the status code, and an object
// that is not there could not be told from a kind that is not served.
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

// asked is a request for several objects.
func (c *Client) asked(verb, namespace string, opts *metav1.ListOptions) *rest.Request {
	request := c.request(verb, namespace).SpecificallyVersionedParams(opts, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"})
	if opts.TimeoutSeconds != nil {
		request.Timeout(time.Duration(*opts.TimeoutSeconds) * time.Second)
	}
	return request
}
