package faultproxy

import (
	"net/http"
	"slices"
	"strings"
)

// Request has the properties of a request that its method and URL show.
type Request struct {
	// Method is the HTTP method.
	Method string
	// Watch: the request is a watch.
	Watch                                  bool
	Group, Version                         string
	Namespace, Resource, Name, Subresource string
}

// Writes reports whether the request can change something.
func (r Request) Writes() bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

// read parses /api/VERSION/... and /apis/GROUP/VERSION/... For other paths it returns only the
// method.
func read(r *http.Request) Request {
	q := Request{Method: r.Method, Watch: slices.Contains([]string{"1", "true"}, r.URL.Query().Get("watch"))}
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
		q.Group = next()
	default:
		return q
	}
	q.Version = next()
	if len(parts) > 2 && parts[0] == "namespaces" {
		next()
		q.Namespace = next()
	}
	q.Resource, q.Name, q.Subresource = next(), next(), next()
	return q
}

// Match selects requests. Empty and nil fields match all requests.
type Match struct {
	Methods                                       []string
	Group, Namespace, Resource, Name, Subresource string
	// Writes: only requests that can change something.
	Writes bool
	// Also is a further condition.
	Also func(Request) bool
}

func (m Match) meets(r Request) bool {
	is := func(want, have string) bool { return want == "" || want == have }
	return (len(m.Methods) == 0 || slices.Contains(m.Methods, r.Method)) && (!m.Writes || r.Writes()) &&
		is(m.Group, r.Group) && is(m.Namespace, r.Namespace) && is(m.Resource, r.Resource) &&
		is(m.Name, r.Name) && is(m.Subresource, r.Subresource) && (m.Also == nil || m.Also(r))
}
