package webhook

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/pkg/follow"
)

// lookAgain is how often to check the endpoints, which have no other writer.
const lookAgain = time.Minute

// lead points the Service, which has no selector, to this replica until the context is done. It is for webhooks that
// only one replica at a time can answer.
func (s *Server) lead(ctx context.Context) {
	address, _ := s.options.advertised() // it was checked at the start
	for ctx.Err() == nil {
		again := lookAgain
		if err := s.point(ctx, []discoveryv1.Endpoint{{Addresses: []string{address.Addr().String()}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}}, address); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot make the Service of the webhooks lead to this replica, retrying", "after", retry)
			again = retry
		}
		follow.Pause(ctx, s.options.Clock, again, nil)
	}
	// Without an endpoint, requests fail immediately until the next replica leads.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := s.point(ctx, nil, address); err != nil {
		klog.FromContext(ctx).Error(err, "The Service of the webhooks still leads to this replica")
	}
}

// point writes the endpoints of the Service. The address type is immutable and comes from the first leader: after a
// change of the cluster's IP family, delete the slice.
func (s *Server) point(ctx context.Context, endpoints []discoveryv1.Endpoint, address netip.AddrPort) error {
	endpointSlices := s.options.Client.DiscoveryV1().EndpointSlices(s.options.Namespace)
	wanted := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: s.options.Service, Namespace: s.options.Namespace, Labels: map[string]string{
			discoveryv1.LabelServiceName: s.options.Service, discoveryv1.LabelManagedBy: "kube-queue-controller"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: endpoints,
		Ports: []discoveryv1.EndpointPort{{Name: new("webhook"), Port: new(int32(address.Port()))}},
	}
	if address.Addr().Is6() {
		wanted.AddressType = discoveryv1.AddressTypeIPv6
	}
	present, err := endpointSlices.Get(ctx, wanted.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = endpointSlices.Create(ctx, wanted, metav1.CreateOptions{})
	case err != nil:
	case sameEndpoints(present, wanted):
	default:
		present.Endpoints, present.Ports, present.Labels = wanted.Endpoints, wanted.Ports, wanted.Labels
		_, err = endpointSlices.Update(ctx, present, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("writing EndpointSlice %s/%s: %w", wanted.Namespace, wanted.Name, err)
	}
	return nil
}

func sameEndpoints(a, b *discoveryv1.EndpointSlice) bool {
	return a.Labels[discoveryv1.LabelServiceName] == b.Labels[discoveryv1.LabelServiceName] &&
		len(a.Ports) == 1 && ptr.Deref(a.Ports[0].Port, 0) == *b.Ports[0].Port &&
		slices.EqualFunc(a.Endpoints, b.Endpoints, func(a, b discoveryv1.Endpoint) bool { return slices.Equal(a.Addresses, b.Addresses) })
}
