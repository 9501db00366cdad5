package webhook

import (
	"context"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestTheServiceLeadsToTheReplicaThatLeads(t *testing.T) {
	for _, c := range []struct{ advertise, address, kind string }{
		{"192.0.2.1:9443", "192.0.2.1", "IPv4"},
		{"[2001:db8::1]:9443", "2001:db8::1", "IPv6"},
	} {
		client := fake.NewClientset()
		clock := clocktesting.NewFakeClock(time.Unix(0, 0))
		s := &Server{options: Options{Settings: Settings{Advertise: c.advertise}, Client: client, Namespace: "kube-queue", Service: "answers", Clock: clock}}
		slice := func() *discoveryv1.EndpointSlice {
			found, err := client.DiscoveryV1().EndpointSlices("kube-queue").Get(t.Context(), "answers", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return found
		}
		for range 2 { // the second one finds the slice of the first
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				s.lead(ctx)
				close(ended)
			}()
			for !clock.HasWaiters() {
				select {
				case <-ended:
					t.Fatal("it has ended")
				case <-time.After(time.Millisecond):
				}
			}
			found := slice()
			if len(found.Endpoints) != 1 || found.Endpoints[0].Addresses[0] != c.address || string(found.AddressType) != c.kind || *found.Ports[0].Port != 9443 ||
				found.Labels[discoveryv1.LabelServiceName] != "answers" {
				t.Errorf("%s: the slice is %+v", c.advertise, found)
			}
			stop()
			<-ended
			if found := slice(); len(found.Endpoints) != 0 {
				t.Errorf("%s: after its end the slice has %v", c.advertise, found.Endpoints)
			}
		}
	}
}

func TestAnAddressThatIsNoneIsNotWritten(t *testing.T) {
	client := fake.NewClientset()
	s := &Server{options: Options{Settings: Settings{Advertise: "here"}, Client: client, Namespace: "kube-queue", Service: "answers", Clock: clocktesting.NewFakeClock(time.Unix(0, 0))}}
	s.lead(t.Context())
	if actions := client.Actions(); len(actions) != 0 {
		t.Errorf("it requests %v", actions)
	}
}
