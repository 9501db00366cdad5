package lease

import (
	"context"
	"io"
	"net/http"
	"time"
)

// Default times of the lease. The holder renews it every renewEvery. The elector checks it
// every retryPeriod and gives up once renewals have failed for renewDeadline. A process
// therefore acts as the leader for at most times.actFor after its last renewal. The API
// server answers or abandons the last write of the process before another process can hold
// the lease: actFor + writeTimeout < leaseDuration. times.go validates that the settings
// satisfy this inequality.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 8 * time.Second
	renewEvery    = 2 * time.Second
	retryPeriod   = 500 * time.Millisecond
	writeTimeout  = 4 * time.Second
	// keepAlive is the interval of keep-alive probes on an idle connection.
	keepAlive = 5 * time.Second
)

// writeDeadline sets a deadline for every write request, both here and at the API server, which otherwise continues
// to process a request after its client has exited. Reads have no deadline: the first list can take a long time, and
// a watch never ends.
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

// cancelingBody releases the deadline of the request when the response has been read.
type cancelingBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *cancelingBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
