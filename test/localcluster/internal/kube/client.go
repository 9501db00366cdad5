// Package kube is a client of a Kubernetes API server that uses JSON and only the standard library.
// The caller defines the types of objects.
package kube

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// requestDeadline is the timeout of a request other than a watch. An API server needs seconds for a
// CRD of one megabyte, and longer while five operators start.
const requestDeadline = time.Minute

// Client is one user of one API server.
type Client struct {
	server, token string
	http          *http.Client
}

// New returns a client of a server. ca is the CA certificate of the server in PEM.
func New(server, token string, ca []byte) *Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &Client{server: server, token: token, http: &http.Client{
		Transport: &http.Transport{
			TLSClientConfig:     &tls.Config{RootCAs: pool},
			MaxIdleConnsPerHost: 16,
			ForceAttemptHTTP2:   true,
		},
	}}
}

// StatusError is an unsuccessful response of the API server.
type StatusError struct {
	Method, Path string
	Code         int
	// Reason distinguishes responses with the same code, such as "AlreadyExists" and "Conflict".
	Reason, Message string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s %s: %d %s", e.Method, e.Path, e.Code, e.Message)
}

// HasCode reports whether an error is a response with this HTTP status.
func HasCode(err error, code int) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Code == code
}

// Exists reports whether an error means that the object already exists. The code is not sufficient:
// a conflict on a quota has the same code.
func Exists(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Reason == "AlreadyExists"
}

// Do sends a request with a body, if not nil, and decodes the response into out, if not nil.
func (c *Client) Do(ctx context.Context, method, path, contentType string, body []byte, out any) error {
	ctx, cancel := context.WithTimeout(ctx, requestDeadline)
	defer cancel()
	answer, err := c.send(ctx, method, path, contentType, body)
	if err != nil {
		return err
	}
	defer answer.Close()
	data, err := io.ReadAll(answer)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// Get reads an object or a list.
func (c *Client) Get(ctx context.Context, path string, out any) error {
	return c.Do(ctx, http.MethodGet, path, "", nil, out)
}

// Create creates an object.
func (c *Client) Create(ctx context.Context, path string, object any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return c.Do(ctx, http.MethodPost, path, "application/json", body, nil)
}

// Apply sends an object with server-side apply. The object is YAML or JSON.
func (c *Client) Apply(ctx context.Context, path, manager string, object []byte) error {
	return c.Do(ctx, http.MethodPatch, path+"?force=true&fieldManager="+manager, "application/apply-patch+yaml", object, nil)
}

// Delete deletes an object. A missing object is no error.
func (c *Client) Delete(ctx context.Context, path string) error {
	err := c.Do(ctx, http.MethodDelete, path, "", nil, nil)
	if HasCode(err, http.StatusNotFound) {
		return nil
	}
	return err
}

// Patch changes an object. The content type says what kind of patch it is.
func (c *Client) Patch(ctx context.Context, path, contentType string, patch any) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	return c.Do(ctx, http.MethodPatch, path, contentType, body, nil)
}

// Watch returns the events of a list, which has a query, as a stream of JSON. The caller closes it.
func (c *Client) Watch(ctx context.Context, list string) (io.ReadCloser, error) {
	return c.send(ctx, http.MethodGet, list+"&watch=true", "", nil)
}

// send returns the body of a successful response. The caller closes it.
func (c *Client) send(ctx context.Context, method, path, contentType string, body []byte) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("User-Agent", "localcluster")
	request.Header.Set("Accept", "application/json")
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode < 300 {
		return response.Body, nil
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	var status struct{ Reason, Message string }
	if json.Unmarshal(data, &status) != nil || status.Message == "" {
		status.Message = string(data[:min(len(data), 500)])
	}
	return nil, &StatusError{method, path, response.StatusCode, status.Reason, status.Message}
}
