package harness

import (
	"net"
	"testing"

	"kube-queue.dev/kube-queue/pkg/controller/reviews"
	"kube-queue.dev/kube-queue/test/clustertest"
)

// AnswersReviews makes a controller that is not started yet answer reviews, at the address that it returns. Its
// Service leads to it by a route. The address that it writes into the EndpointSlice belongs to no machine.
func (s *Suite) AnswersReviews(t testing.TB, controller *Program) (address string) {
	t.Helper()
	address, _ = freeAddresses(t)
	_, port, err := net.SplitHostPort(address)
	Must(t, err)
	controller.Args = append(controller.Args, "--webhook-bind-address="+address, "--webhook-advertise-address=192.0.2.1:"+port)
	Must(t, s.Route(t.Context(), clustertest.Namespace+"/"+reviews.Service+":443", address))
	return address
}
