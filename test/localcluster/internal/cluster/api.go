package cluster

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

// API speaks to the API server as the administrator, in JSON. It can do the few
// things a start needs; everybody else has kubectl.
type API struct {
	server, token string
	client        *http.Client
}

func newAPI(server, token string, ca []byte) *API {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &API{server: server, token: token, client: &http.Client{
		Timeout: 10 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig:     &tls.Config{RootCAs: pool},
			MaxIdleConnsPerHost: 16,
			ForceAttemptHTTP2:   true,
		},
	}}
}

// StatusError is an answer of the API server that is not a success.
type StatusError struct {
	Method, Path string
	Code         int
	Message      string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s %s: %d %s", e.Method, e.Path, e.Code, e.Message)
}

func hasCode(err error, code int) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Code == code
}

// get reads an object into out.
func (a *API) get(ctx context.Context, path string, out any) error {
	return a.do(ctx, http.MethodGet, path, "", nil, out)
}

// create makes an object; one that is there already is fine.
func (a *API) create(ctx context.Context, path string, object any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	err = a.do(ctx, http.MethodPost, path, "application/json", body, nil)
	if hasCode(err, http.StatusConflict) {
		return nil
	}
	return err
}

// apply applies a YAML document on the server's side.
func (a *API) apply(ctx context.Context, path string, yaml []byte) error {
	return a.do(ctx, http.MethodPatch, path+"?fieldManager=localcluster&force=true", "application/apply-patch+yaml", yaml, nil)
}

// delete removes an object; one that is gone already is fine.
func (a *API) delete(ctx context.Context, path string) error {
	err := a.do(ctx, http.MethodDelete, path, "", nil, nil)
	if hasCode(err, http.StatusNotFound) {
		return nil
	}
	return err
}

func (a *API) do(ctx context.Context, method, path, contentType string, body []byte, out any) error {
	request, err := http.NewRequestWithContext(ctx, method, a.server+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+a.token)
	request.Header.Set("User-Agent", "localcluster")
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := a.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if response.StatusCode >= 300 {
		var status struct{ Message string }
		if json.Unmarshal(data, &status) != nil || status.Message == "" {
			status.Message = string(data[:min(len(data), 500)])
		}
		return &StatusError{method, path, response.StatusCode, status.Message}
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// pollInterval is short because starts are to be quick; what is asked is cheap.
const pollInterval = 20 * time.Millisecond

// waitFor asks until the check passes or the context ends, and then says what
// the check missed last.
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

// healthy asks a health endpoint.
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

// loopback asks local servers, whoever signed their certificates.
func loopback() *http.Client {
	return &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, Proxy: nil},
	}
}
