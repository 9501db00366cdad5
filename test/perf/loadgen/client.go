package loadgen

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"k8s.io/client-go/rest"

	"kube-queue.dev/kube-queue/test/perf/wire"
)

// agent is the first word of the user agent of the load generator.
const agent = "perf-player"

// Client reads and writes units as one user.
type Client struct {
	wire  *wire.Client
	patch http.Header
}

// NewClient returns a client with the user of the config.
func NewClient(config *rest.Config) (*Client, error) {
	c, err := wire.New(config, agent)
	if err != nil {
		return nil, err
	}
	return &Client{wire: c, patch: c.Header("application/json", "application/merge-patch+json")}, nil
}

// Close closes the connections.
func (c *Client) Close() { c.wire.Close() }

const api = "/apis/scheduling.x-k8s.io/v1alpha1/"

// Create creates a unit.
func (c *Client) Create(ctx context.Context, namespace string, body []byte) error {
	return c.write(ctx, wire.Request{Method: http.MethodPost, Path: api + "namespaces/" + namespace + "/queueunits", Body: body})
}

// PatchStatus merges the patch into a unit's status.
func (c *Client) PatchStatus(ctx context.Context, namespace, name string, patch []byte) error {
	path := api + "namespaces/" + namespace + "/queueunits/" + name + "/status"
	return c.write(ctx, wire.Request{Method: http.MethodPatch, Path: path, Header: c.patch, Body: patch})
}

// writeTimeout is the timeout of a write, as in kube-queue's programs.
const writeTimeout = 30 * time.Second

func (c *Client) write(ctx context.Context, r wire.Request) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return c.wire.Do(ctx, r, nil)
}

// Version returns the current resourceVersion, to start a watch.
func (c *Client) Version(ctx context.Context) (string, error) {
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	err := c.wire.Do(ctx, wire.Request{Method: http.MethodGet, Path: api + "queueunits", Query: "limit=1"}, &list)
	return list.Metadata.ResourceVersion, err
}

// Event is an event of a watch with the fields that the load generator needs.
type Event struct {
	Type   string `json:"type"`
	Object struct {
		Metadata struct {
			Name            string `json:"name"`
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Status struct {
			Phase  string `json:"phase"`
			Reason string `json:"reason"`
		} `json:"status"`
	} `json:"object"`
}

// Watch visits the events of units of all namespaces after a version, until the server ends the
// watch or ctx ends. It returns the last version.
func (c *Client) Watch(ctx context.Context, version string, visit func(*Event)) (string, error) {
	query := url.Values{"watch": {"true"}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {"3600"}, "resourceVersion": {version}}
	answer, err := c.wire.Open(ctx, wire.Request{Method: http.MethodGet, Path: api + "queueunits", Query: query.Encode()})
	if err != nil {
		return version, fmt.Errorf("watching units: %w", err)
	}
	defer answer.Close()
	lines := bufio.NewReaderSize(answer, 4<<20)
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return version, nil
		}
		if err != nil {
			return version, fmt.Errorf("watching units: %w", err)
		}
		var event Event
		err = json.Unmarshal(line, &event)
		switch {
		case event.Type == "ERROR": // its status is a string
			// The version is probably too old, and events were missed.
			return version, fmt.Errorf("watching units: %w", &wire.Refused{Code: http.StatusGone, Message: string(line[:min(len(line), 500)])})
		case err != nil:
			return version, fmt.Errorf("watching units: %w in %.200q", err, line)
		}
		version = event.Object.Metadata.ResourceVersion
		if event.Type != "BOOKMARK" {
			visit(&event)
		}
	}
}
