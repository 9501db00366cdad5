package webhook

import (
	"context"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"kube-queue.dev/kube-queue/pkg/program/settings"
	"kube-queue.dev/kube-queue/test/require"
)

func TestTheServiceLeadsToTheReplicaThatLeads(t *testing.T) {
	for _, c := range []struct{ advertise, address, kind string }{
		{"192.0.2.1:9443", "192.0.2.1", "IPv4"},
		{"[192.0.2.1]:9443", "192.0.2.1", "IPv4"}, // the chart does not know the IP family
		{"[2001:db8::1]:9443", "2001:db8::1", "IPv6"},
		{"2001:db8::1:9443", "2001:db8::1", "IPv6"},
		{"[::ffff:192.0.2.1]:9443", "192.0.2.1", "IPv4"},
	} {
		client := fake.NewClientset()
		clock := clocktesting.NewFakeClock(time.Unix(0, 0))
		s := &Server{options: Options{Settings: Settings{Advertise: c.advertise}, Client: client, Namespace: "kube-queue", Service: "answers", Clock: clock}}
		slice := func() *discoveryv1.EndpointSlice {
			found, err := client.DiscoveryV1().EndpointSlices("kube-queue").Get(t.Context(), "answers", metav1.GetOptions{})
			require.NoError(t, err)
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

func TestAnAddressThatIsNoneIsRefusedAtTheStart(t *testing.T) {
	for _, address := range []string{"here", "here:9443", "192.0.2.1", "[2001:db8::1]", "192.0.2.1:https", "192.0.2.1:65536", "$(POD_IP):9443", "[$(POD_IP)]:9443"} {
		s := DefaultSettings()
		set := settings.New("program", "Kind")
		s.DeclareLed(set, "for a test")
		if err := set.Read([]string{"--webhook-advertise-address=" + address}, nil); err == nil {
			t.Errorf("%q is accepted", address)
		}
	}
}
