package metrics

import (
	"net/http"
	"strconv"
	"strings"
)

// Writes wraps a RoundTripper and counts its write requests.
func (r *Registry) Writes(next http.RoundTripper) http.RoundTripper {
	return countedWrites{r, next}
}

type countedWrites struct {
	registry *Registry
	next     http.RoundTripper
}

// RoundTrip sends a request and counts it by its response.
func (c countedWrites) RoundTrip(req *http.Request) (*http.Response, error) {
	verb := verbOf(req.Method)
	if verb == "" {
		return c.next.RoundTrip(req)
	}
	resp, err := c.next.RoundTrip(req)
	code := "error"
	if err == nil {
		code = strconv.Itoa(resp.StatusCode)
	}
	c.registry.counters[apiWrites].WithLabelValues(verb, resourceOf(req.URL.Path), code).Inc()
	return resp, err
}

// WrappedRoundTripper returns the wrapped RoundTripper, as client-go requires.
func (c countedWrites) WrappedRoundTripper() http.RoundTripper { return c.next }

// verbOf returns the verb of a write request; empty for a read request.
func verbOf(method string) string {
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	default:
		return ""
	}
}

// resourceOf returns the resource of an API path with its subresource: "queueunits" or
// "queueunits/status". It never contains the name of an object.
func resourceOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i, part := range parts { // a proxy can add a prefix
		switch {
		case part == "api" && len(parts) > i+2: // api/v1/...
			return resourceIn(parts[i+2:])
		case part == "apis" && len(parts) > i+3: // apis/group/version/...
			return resourceIn(parts[i+3:])
		}
	}
	return other
}

// resourceIn parses [namespaces, NAMESPACE,] resource[, NAME[, subresource]].
func resourceIn(parts []string) string {
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	if len(parts) > 2 {
		return parts[0] + "/" + parts[2]
	}
	return parts[0]
}
