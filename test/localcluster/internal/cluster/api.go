package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"time"

	"kube-queue.dev/kube-queue/test/localcluster/internal/kube"
)

// API is a client of the API server with the rights of the administrator. It has only the
// operations that a start needs.
type API struct{ client *kube.Client }

func newAPI(server, token string, ca []byte) *API {
	return &API{kube.New(server, token, ca)}
}

func hasCode(err error, code int) bool { return kube.HasCode(err, code) }

// get reads an object into out.
func (a *API) get(ctx context.Context, path string, out any) error {
	return a.client.Get(ctx, path, out)
}

// create creates an object. An existing object is no error.
func (a *API) create(ctx context.Context, path string, object any) error {
	err := a.client.Create(ctx, path, object)
	if hasCode(err, http.StatusConflict) {
		return nil
	}
	return err
}

// apply applies a YAML document with server-side apply.
func (a *API) apply(ctx context.Context, path string, yaml []byte) error {
	return a.client.Apply(ctx, path, "localcluster", yaml)
}

// delete deletes an object. A missing object is no error.
func (a *API) delete(ctx context.Context, path string) error {
	return a.client.Delete(ctx, path)
}

func (a *API) do(ctx context.Context, method, path, contentType string, body []byte, out any) error {
	return a.client.Do(ctx, method, path, contentType, body, out)
}

// pollInterval is short to make starts fast. The requests are cheap.
const pollInterval = 20 * time.Millisecond

// waitFor repeats the check until it passes or the context ends. The error contains the last result
// of the check.
func waitFor(ctx context.Context, what string, check func(context.Context) error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", what, context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

// healthy returns a check of a health endpoint.
func healthy(client *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s: %s", url, response.Status, bytes.TrimSpace(body))
		}
		return nil
	}
}

// loopback returns a client for local servers that does not verify certificates.
func loopback() *http.Client {
	return &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, Proxy: nil},
	}
}
