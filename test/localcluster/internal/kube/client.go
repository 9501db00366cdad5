// Package kube sends requests to a Kubernetes API server by their paths. The caller defines the types of objects, so
// the package needs no modules of operators.
package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// requestDeadline is the timeout of a request other than a watch. An API server takes seconds for a CRD of one
// megabyte, and longer while five operators start.
const requestDeadline = time.Minute

// Client is one user of one API server. Paths may contain a query.
type Client struct {
	rest rest.Interface
	// Dynamic is for informers.
	Dynamic dynamic.Interface
}

// New returns a client.
func New(config *rest.Config) (*Client, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // has the Status of an error
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.QPS, config.UserAgent, config.WarningHandler = -1, "localcluster", rest.NoWarnings{}
	client, err := rest.UnversionedRESTClientFor(config)
	objects, dynamicErr := dynamic.NewForConfig(config)
	if err := errors.Join(err, dynamicErr); err != nil {
		return nil, fmt.Errorf("client of %s: %w", config.Host, err)
	}
	return &Client{client, objects}, nil
}

// do sends a request and decodes the response into out, if not nil.
func do(ctx context.Context, request *rest.Request, out any) error {
	ctx, cancel := context.WithTimeout(ctx, requestDeadline)
	defer cancel()
	result := request.MaxRetries(0).Do(ctx) // the caller repeats it
	if err := result.Error(); err != nil || out == nil {
		return err
	}
	data, err := result.Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(data, out)
}

// Get reads an object or a list.
func (c *Client) Get(ctx context.Context, path string, out any) error {
	return do(ctx, c.rest.Get().RequestURI(path), out)
}

// Create creates an object.
func (c *Client) Create(ctx context.Context, path string, object any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return c.create(ctx, path, "application/json", body)
}

// CreateYAML creates an object in YAML.
func (c *Client) CreateYAML(ctx context.Context, path string, object []byte) error {
	return c.create(ctx, path, "application/yaml", object)
}

func (c *Client) create(ctx context.Context, path, contentType string, object []byte) error {
	return do(ctx, c.rest.Post().RequestURI(path).SetHeader("Content-Type", contentType).Body(object), nil)
}

// Apply sends an object with server-side apply. The object is YAML or JSON.
func (c *Client) Apply(ctx context.Context, path, manager string, object []byte) error {
	return do(ctx, c.rest.Patch(types.ApplyPatchType).RequestURI(path+"?force=true&fieldManager="+manager).Body(object), nil)
}

// Delete deletes an object. A missing object is no error.
func (c *Client) Delete(ctx context.Context, path string) error {
	err := do(ctx, c.rest.Delete().RequestURI(path), nil)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Patch changes an object.
func (c *Client) Patch(ctx context.Context, path string, kind types.PatchType, patch any) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	return do(ctx, c.rest.Patch(kind).RequestURI(path).Body(body), nil)
}
