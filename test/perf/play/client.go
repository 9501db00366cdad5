package play

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"k8s.io/client-go/rest"
)

// Agent is the first word of the user agent of the player's requests.
const Agent = "perf-player"

// Client reads and writes units as one user.
type Client struct {
	transport *http.Transport
	base      *url.URL
	// Requests of a kind have the same headers, which nobody changes.
	create, patch, read http.Header
}

// NewClient acts as the user of the config; agent is its user agent.
func NewClient(config *rest.Config, agent string) (*Client, error) {
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	base, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	header := func(contentType string) http.Header {
		h := http.Header{"User-Agent": {agent}, "Accept": {"application/json"}}
		if config.BearerToken != "" {
			h.Set("Authorization", "Bearer "+config.BearerToken)
		}
		if contentType != "" {
			h.Set("Content-Type", contentType)
		}
		return h
	}
	return &Client{
		transport: &http.Transport{TLSClientConfig: tls, ForceAttemptHTTP2: true, DisableCompression: true},
		base:      base,
		create:    header("application/json"), patch: header("application/merge-patch+json"), read: header(""),
	}, nil
}

// Close ends its connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Refused is an answer of the API server that is no success.
type Refused struct {
	Code    int
	Message string
}

func (r *Refused) Error() string {
	return fmt.Sprintf("the API server answers %d: %s", r.Code, r.Message)
}

// Conflict tells that the object was changed meanwhile, or exists already.
func Conflict(err error) bool { return hasCode(err, http.StatusConflict) }

func hasCode(err error, code int) bool {
	var refused *Refused
	return errors.As(err, &refused) && refused.Code == code
}

// passing tells whether the same request may succeed a moment later.
func passing(err error) bool {
	var refused *Refused
	return !errors.As(err, &refused) || refused.Code == http.StatusTooManyRequests || refused.Code >= 500
}

const units = "/apis/scheduling.x-k8s.io/v1alpha1/"

// Create creates a unit.
func (c *Client) Create(ctx context.Context, namespace string, body []byte) error {
	return c.write(ctx, http.MethodPost, units+"namespaces/"+namespace+"/queueunits", c.create, body)
}

// PatchStatus merges the patch into a unit's status.
func (c *Client) PatchStatus(ctx context.Context, namespace, name string, patch []byte) error {
	return c.write(ctx, http.MethodPatch, units+"namespaces/"+namespace+"/queueunits/"+name+"/status", c.patch, patch)
}

// writeTimeout bounds every write, as in kube-queue's programs.
const writeTimeout = 30 * time.Second

func (c *Client) write(ctx context.Context, method, path string, header http.Header, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	answer, err := c.send(ctx, method, path, "", header, body)
	if err != nil {
		return err
	}
	defer answer.Close()
	_, err = io.Copy(io.Discard, answer)
	return err
}

func (c *Client) send(ctx context.Context, method, path, query string, header http.Header, body []byte) (io.ReadCloser, error) {
	address := *c.base
	address.Path, address.RawQuery = path, query
	request := (&http.Request{Method: method, URL: &address, Host: address.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	if body != nil {
		request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		// For a connection that the server has just closed.
		request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode < 300 {
		return response.Body, nil
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
	var status struct{ Message string }
	if json.Unmarshal(text, &status) == nil && status.Message != "" {
		text = []byte(status.Message)
	}
	return nil, &Refused{response.StatusCode, string(text)}
}

// Version is the resourceVersion from which a watch sees all that comes.
func (c *Client) Version(ctx context.Context) (string, error) {
	answer, err := c.send(ctx, http.MethodGet, units+"queueunits", "limit=1", c.read, nil)
	if err != nil {
		return "", err
	}
	defer answer.Close()
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.NewDecoder(answer).Decode(&list); err != nil {
		return "", fmt.Errorf("the list of units: %w", err)
	}
	return list.Metadata.ResourceVersion, nil
}

// Watch visits what happens to units of all namespaces after that version, until the
// server ends the watch, as it does now and then, or ctx ends. It returns the last
// version that it has seen. The visitor must not keep the event's bytes.
func (c *Client) Watch(ctx context.Context, version string, visit func(*Event)) (string, error) {
	query := url.Values{"watch": {"true"}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {"3600"}, "resourceVersion": {version}}
	answer, err := c.send(ctx, http.MethodGet, units+"queueunits", query.Encode(), c.read, nil)
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
			// Most likely the version is too old by now, and events were missed.
			return version, fmt.Errorf("watching units: %w", &Refused{http.StatusGone, string(line[:min(len(line), 500)])})
		}
		version = string(event.Version)
		if string(event.Type) != "BOOKMARK" {
			visit(&event)
		}
	}
}
