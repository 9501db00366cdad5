package loadgen

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"k8s.io/client-go/rest"

	"kube-queue.dev/kube-queue/test/perf/wire"
)

// Agent is the first word of the user agent of the load generator.
const Agent = "perf-player"

// Client reads and writes units as one user.
type Client struct {
	wire                *wire.Client
	create, patch, read http.Header
}

// NewClient returns a client with the user of the config and a user agent.
func NewClient(config *rest.Config, agent string) (*Client, error) {
	c, err := wire.New(config, agent)
	if err != nil {
		return nil, err
	}
	const json = "application/json"
	return &Client{wire: c, create: c.Header(json, json), patch: c.Header(json, "application/merge-patch+json"), read: c.Header(json, "")}, nil
}

// Close closes the connections.
func (c *Client) Close() { c.wire.Close() }

const units = "/apis/scheduling.x-k8s.io/v1alpha1/"

// Create creates a unit.
func (c *Client) Create(ctx context.Context, namespace string, body []byte) error {
	return c.write(ctx, wire.Request{Method: http.MethodPost, Path: units + "namespaces/" + namespace + "/queueunits", Header: c.create, Body: body})
}

// PatchStatus merges the patch into a unit's status.
func (c *Client) PatchStatus(ctx context.Context, namespace, name string, patch []byte) error {
	path := units + "namespaces/" + namespace + "/queueunits/" + name + "/status"
	return c.write(ctx, wire.Request{Method: http.MethodPatch, Path: path, Header: c.patch, Body: patch})
}

// writeTimeout is the timeout of a write, as in kube-queue's programs.
const writeTimeout = 30 * time.Second

func (c *Client) write(ctx context.Context, r wire.Request) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return c.wire.Send(ctx, r)
}

// Version returns the current resourceVersion, to start a watch.
func (c *Client) Version(ctx context.Context) (string, error) {
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	err := c.wire.Decode(ctx, wire.Request{Method: http.MethodGet, Path: units + "queueunits", Query: "limit=1", Header: c.read}, &list)
	if err != nil {
		return "", fmt.Errorf("the list of units: %w", err)
	}
	return list.Metadata.ResourceVersion, nil
}

// Watch visits the events of units of all namespaces after a version, until the server ends the
// watch or ctx ends. It returns the last version. The visitor must not keep the event's bytes.
func (c *Client) Watch(ctx context.Context, version string, visit func(*Event)) (string, error) {
	query := url.Values{"watch": {"true"}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {"3600"}, "resourceVersion": {version}}
	answer, err := c.wire.Open(ctx, wire.Request{Method: http.MethodGet, Path: units + "queueunits", Query: query.Encode(), Header: c.read})
	if err != nil {
		return version, err
	}
	defer answer.Close()
	lines := bufio.NewReaderSize(answer, 4<<20)
	var event Event
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return version, nil
		}
		if err != nil {
			return version, fmt.Errorf("watching units: %w", err)
		}
		if err := event.read(line); err != nil {
			return version, fmt.Errorf("watching units: %w in %.200q", err, line)
		}
		if string(event.Type) == "ERROR" {
			// The version is probably too old, and events were missed.
			return version, fmt.Errorf("watching units: %w", &wire.Refused{Code: http.StatusGone, Message: string(line[:min(len(line), 500)])})
		}
		version = string(event.Version)
		if string(event.Type) != "BOOKMARK" {
			visit(&event)
		}
	}
}
