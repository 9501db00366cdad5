package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// check returns an error until a condition holds.
type check = func(context.Context) error

// pollInterval is short to make starts fast. The requests are cheap.
const pollInterval = 20 * time.Millisecond

// waitFor repeats the check until it passes or the context ends. The error contains the last result
// of the check.
func waitFor(ctx context.Context, what string, check check) error {
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

// healthy returns a check of a health endpoint on this machine. It does not verify the certificate.
func healthy(url string) check {
	client := &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	}
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

// createIfMissing creates an object. An existing object is no error.
func (s *setup) createIfMissing(ctx context.Context, path string, object any) error {
	err := s.api.Create(ctx, path, object)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
