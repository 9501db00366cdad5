package faultproxy

import (
	"net/http"
	"strings"
)

// Request has the properties of a request that its method and URL show.
type Request struct {
	// Method is the HTTP method.
	Method                                 string
	Namespace, Resource, Name, Subresource string
}

// Writes reports whether the request can change something.
func (r Request) Writes() bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

// read parses /api/VERSION/... and /apis/GROUP/VERSION/... For other paths it returns only the
// method.
func read(r *http.Request) Request {
	q := Request{Method: r.Method}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	next := func() string {
		if len(parts) == 0 {
			return ""
		}
		part := parts[0]
		parts = parts[1:]
		return part
	}
	switch next() {
	case "api":
	case "apis":
		next() // the group
	default:
		return q
	}
	next() // the version
	if len(parts) > 2 && parts[0] == "namespaces" {
		next()
		q.Namespace = next()
	}
	q.Resource, q.Name, q.Subresource = next(), next(), next()
	return q
}
