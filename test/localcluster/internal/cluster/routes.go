package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Routes are the addresses of programs that serve a port of a Service and have no pods, by
// NAMESPACE/NAME:PORT. A route without addresses removes a route.
type Routes map[string][]string

var routedPort = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9]*[a-z0-9])?:([0-9]{1,5})$`)

// ParseRoute adds a route of the form NAMESPACE/NAME:PORT=ADDRESS,... to r.
func (r Routes) ParseRoute(text string) error {
	port, list, found := strings.Cut(text, "=")
	if !found {
		return fmt.Errorf("route %q: must be NAMESPACE/SERVICE:PORT=ADDRESS[,ADDRESS]", text)
	}
	addresses := []string{}
	if list != "" {
		addresses = strings.Split(list, ",")
	}
	r[port] = addresses
	return Routes{port: addresses}.Validate()
}

// Validate returns an error if a route is invalid.
func (r Routes) Validate() error {
	for _, port := range slices.Sorted(maps.Keys(r)) {
		if !routedPort.MatchString(port) {
			return fmt.Errorf("route %q: must be NAMESPACE/SERVICE:PORT with the number of the Service's port", port)
		}
		for _, address := range r[port] {
			host, number, err := net.SplitHostPort(address)
			if err != nil {
				return fmt.Errorf("route %q: %w", port, err)
			}
			if _, err := strconv.ParseUint(number, 10, 16); err != nil || host == "" {
				return fmt.Errorf("route %q: address %q must be HOST:PORT", port, address)
			}
		}
	}
	return nil
}

// routeTable has the routes in force.
type routeTable struct {
	mu     sync.Mutex
	routes Routes
	// next numbers connections, so that addresses take turns.
	next map[string]int
}

// merge adds, replaces and removes routes.
func (t *routeTable) merge(routes Routes) error {
	if err := routes.Validate(); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.routes == nil {
		t.routes, t.next = Routes{}, map[string]int{}
	}
	for port, addresses := range routes {
		if len(addresses) == 0 {
			delete(t.routes, port)
		} else {
			t.routes[port] = addresses
		}
	}
	return nil
}

// of returns the addresses of a route, in the order in which to try them.
func (t *routeTable) of(port string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	addresses := t.routes[port]
	if len(addresses) == 0 {
		return nil
	}
	first := t.next[port] % len(addresses)
	t.next[port]++
	return slices.Concat(addresses[first:], addresses[:first])
}

// dialFirst connects to the first address that accepts the connection.
func dialFirst(ctx context.Context, addresses []string) (net.Conn, error) {
	var errs []error
	for _, address := range addresses {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			return connection, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}
