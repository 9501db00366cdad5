package clustertest

import (
	"context"
	"fmt"
	"strings"
)

// Route routes a port of a Service, as NAMESPACE/NAME:PORT, to programs without pods: the API server
// connects to each of the addresses in turn that accepts the connection. Without addresses the route is
// removed. A Service without a route leads to its ready endpoints, such as the pods of test/podrunner.
//
// An APIService also needs an EndpointSlice of the Service, because the API server looks for one.
func (c *Cluster) Route(ctx context.Context, port string, addresses ...string) error {
	if _, err := localcluster(ctx, "route", "--data="+c.Data, port+"="+strings.Join(addresses, ",")); err != nil {
		return fmt.Errorf("routing %s: %w", port, err)
	}
	return nil
}
