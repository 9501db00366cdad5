package clustertest

import (
	"context"
	"fmt"
	"net"

	"kube-queue.dev/kube-queue/pkg/controller/reviews"
	"kube-queue.dev/kube-queue/test/freeport"
)

// Route routes a port of a Service, given as NAMESPACE/NAME:PORT, to a program without a pod. A Service without a
// route leads to its ready endpoints, such as the pods of test/podrunner.
func (c *Cluster) Route(ctx context.Context, port, address string) error {
	if _, err := localcluster(ctx, "route", "--data="+c.Data, port+"="+address); err != nil {
		return fmt.Errorf("routing %s: %w", port, err)
	}
	return nil
}

// RouteReviews routes reviews to a free address, and returns the arguments that make kube-queue-controller serve them
// there. The advertised address in the EndpointSlice belongs to no machine.
func (c *Cluster) RouteReviews(ctx context.Context) (address string, args []string, err error) {
	if address, err = freeport.Address(); err != nil {
		return "", nil, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", nil, err
	}
	args = []string{"--webhook-bind-address=" + address, "--webhook-advertise-address=192.0.2.1:" + port}
	return address, args, c.Route(ctx, Namespace+"/"+reviews.Service+":443", address)
}
