package jobs

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"

	"kube-queue.dev/kube-queue/test/perf/wire"
)

// api sends requests and decodes the needed parts of responses.
type api struct {
	client *wire.Client
	plain  http.Header
}

// Agent is the user agent of this tool in the audit log.
const Agent = "perf"

func newAPI(config *rest.Config) (*api, error) {
	c, err := wire.New(config, Agent)
	if err != nil {
		return nil, err
	}
	return &api{client: c, plain: c.Header("application/json", "application/json")}, nil
}

// request returns a request for a path, which can include a query.
func request(method, path string, header http.Header, body []byte) wire.Request {
	path, query, _ := strings.Cut(path, "?")
	return wire.Request{Method: method, Path: path, Query: query, Header: header, Body: body}
}

// stream returns the body of the response to a GET request. The caller closes it.
func (a *api) stream(ctx context.Context, path, accept string) (io.ReadCloser, error) {
	answer, err := a.client.Open(ctx, request(http.MethodGet, path, a.client.Header(accept, ""), nil))
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", path, err)
	}
	return answer, nil
}

// send sends a request and discards the response.
func (a *api) send(ctx context.Context, method, path string, body []byte) error {
	if err := a.client.Send(ctx, request(method, path, a.plain, body)); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// decode sends a request and decodes the response.
func (a *api) decode(ctx context.Context, method, path string, body []byte, into any) error {
	if err := a.client.Decode(ctx, request(method, path, a.plain, body), into); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}
