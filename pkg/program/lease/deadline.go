package lease

import (
	"context"
	"io"
	"net/http"
	"time"
)

// Times of the lease, where nobody sets others. Who holds it renews it every renewEvery;
// the elector looks at it every retryPeriod and gives up renewDeadline after it began to
// fail. Until then a process acts, for times.actFor after its last renewal. A write
// that it sent then is answered or given up by the API server before another process may
// hold the lease: actFor + writeTimeout < leaseDuration. The settings are held to it in
// times.go.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 8 * time.Second
	renewEvery    = 2 * time.Second
	retryPeriod   = 500 * time.Millisecond
	writeTimeout  = 4 * time.Second
	// keepAlive is how often a connection is tried over which nothing comes.
	keepAlive = 5 * time.Second
)

// writeDeadline bounds every request that changes something, here and at the API
// server, which would otherwise go on with a request whose sender is gone.
// Reads are left alone: a first list may be long, and a watch has no end.
func writeDeadline(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if req.Method == http.MethodGet || req.Method == http.MethodHead {
			return next.RoundTrip(req)
		}
		ctx, cancel := context.WithTimeout(req.Context(), writeTimeout)
		req = req.Clone(ctx)
		query := req.URL.Query()
		if query.Get("timeout") == "" {
			query.Set("timeout", writeTimeout.String())
			req.URL.RawQuery = query.Encode()
		}
		resp, err := next.RoundTrip(req)
		if err != nil {
			cancel()
			return nil, err
		}
		resp.Body = &cancelingBody{ReadCloser: resp.Body, cancel: cancel}
		return resp, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// cancelingBody ends the request's deadline when the answer has been read.
type cancelingBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *cancelingBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
