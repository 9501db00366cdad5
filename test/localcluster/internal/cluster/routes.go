package cluster

import (
	"fmt"
	"maps"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Routes are the addresses of programs that serve a port of a Service and have no pods, by
// NAMESPACE/NAME:PORT.
type Routes map[string]string

var routedPort = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9]*[a-z0-9])?:([0-9]{1,5})$`)

// ParseRoute adds a route of the form NAMESPACE/NAME:PORT=ADDRESS to r.
func (r Routes) ParseRoute(text string) error {
	port, address, found := strings.Cut(text, "=")
	if !found || !routedPort.MatchString(port) {
		return fmt.Errorf("route %q: must be NAMESPACE/SERVICE:PORT=ADDRESS with the number of the Service's port", text)
	}
	host, number, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("route %q: %w", text, err)
	}
	if _, err := strconv.ParseUint(number, 10, 16); err != nil || host == "" {
		return fmt.Errorf("route %q: address %q must be HOST:PORT", text, address)
	}
	r[port] = address
	return nil
}

// routeTable has the routes in force.
type routeTable struct {
	mu     sync.Mutex
	routes Routes
}

// merge adds and replaces routes.
func (t *routeTable) merge(routes Routes) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.routes == nil {
		t.routes = Routes{}
	}
	maps.Copy(t.routes, routes)
}

// of returns the address of a route, or "".
func (t *routeTable) of(port string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.routes[port]
}
