package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"
)

// api sends requests that are ready and reads of the answers what is wanted, which is
// mostly nothing: the tool shares the machine with what it measures.
type api struct {
	client *http.Client
	server string
}

func newAPI(config *rest.Config) (*api, error) {
	config.UserAgent = Agent
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return &api{client: client, server: strings.TrimSuffix(config.Host, "/")}, nil
}

// Agent is the tool's own in the audit log.
const Agent = "perf"

// open returns the body of a successful answer, to be closed.
func (a *api) open(ctx context.Context, method, path, accept string, body []byte) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, method, a.server+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", accept)
	response, err := a.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		defer response.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(response.Body, 2000))
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, response.Status, bytes.TrimSpace(text))
	}
	return response.Body, nil
}

// send drops the answer.
func (a *api) send(ctx context.Context, method, path string, body []byte) error {
	answer, err := a.open(ctx, method, path, "application/json", body)
	if err != nil {
		return err
	}
	defer answer.Close()
	_, err = io.Copy(io.Discard, answer)
	return err
}

// decode reads the answer into what is given.
func (a *api) decode(ctx context.Context, method, path string, body []byte, into any) error {
	answer, err := a.open(ctx, method, path, "application/json", body)
	if err != nil {
		return err
	}
	defer answer.Close()
	if err := json.NewDecoder(answer).Decode(into); err != nil {
		return fmt.Errorf("%s %s: the answer: %w", method, path, err)
	}
	return nil
}
