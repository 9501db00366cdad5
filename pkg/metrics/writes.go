package metrics

import (
	"net/http"
	"strconv"
	"strings"
)

// Writes counts the requests that go through it and change something.
func (r *Registry) Writes(next http.RoundTripper) http.RoundTripper {
	return countedWrites{r, next}
}

type countedWrites struct {
	registry *Registry
	next     http.RoundTripper
}

// RoundTrip counts a request by its answer.
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

// WrappedRoundTripper is what is wrapped, as client-go asks for it.
func (c countedWrites) WrappedRoundTripper() http.RoundTripper { return c.next }

// verbOf is empty for a request that changes nothing.
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

// resourceOf is the resource of a path of the API, and its subresource: "queueunits" or
// "queueunits/status". No name of an object is ever in it.
func resourceOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i, part := range parts { // a proxy may have put something before
		switch {
		case part == "api" && len(parts) > i+2: // api/v1/...
			return resourceIn(parts[i+2:])
		case part == "apis" && len(parts) > i+3: // apis/group/version/...
			return resourceIn(parts[i+3:])
		}
	}
	return other
}

// resourceIn takes [namespaces, NAMESPACE,] resource[, NAME[, subresource]].
func resourceIn(parts []string) string {
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	if len(parts) > 2 {
		return parts[0] + "/" + parts[2]
	}
	return parts[0]
}
