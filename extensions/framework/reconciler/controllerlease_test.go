package reconciler

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/test/require"
)

func leaseOf(holder string, renewed time.Time, lasts int32) *coordinationv1.Lease {
	return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &lasts, RenewTime: new(metav1.NewMicroTime(renewed))}}
}

func TestAnOutageOfTheControllerIsSeenByItsLease(t *testing.T) {
	const skew = time.Hour // the clock of the controller is late
	renewing := func(at time.Duration) *coordinationv1.Lease { return leaseOf("a", noon.Add(at), 15) }
	for _, test := range []struct {
		name string
		// lease returns the Lease at a second after noon, when it is first read.
		lease func(second int) *coordinationv1.Lease
		// down is the first second at which the outage is seen; -1 for never.
		down int
	}{
		{"one that renews its Lease runs", func(s int) *coordinationv1.Lease { return renewing(time.Duration(s/2*2) * time.Second) }, -1},
		{"one whose clock is late runs too", func(s int) *coordinationv1.Lease { return renewing(time.Duration(s/2*2)*time.Second - skew) }, -1},
		{"one that stops is down when its Lease has expired", func(s int) *coordinationv1.Lease { return renewing(time.Duration(min(s, 4)) * time.Second) }, 20},
		{"one that stopped long ago is soon seen", func(int) *coordinationv1.Lease { return renewing(-time.Hour) }, 3},
		{"a Lease without a holder may soon have one", func(s int) *coordinationv1.Lease {
			if s < 5 {
				return leaseOf("", noon, 1)
			}
			return renewing(time.Duration(s) * time.Second)
		}, 3},
		{"a replica on standby takes it", func(s int) *coordinationv1.Lease {
			if s < 2 {
				return leaseOf("", noon, 1)
			}
			return renewing(time.Duration(s) * time.Second)
		}, -1},
		{"without a Lease none runs", func(int) *coordinationv1.Lease { return nil }, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			var second int
			c := &controllerLease{get: func(context.Context) (*coordinationv1.Lease, error) {
				if lease := test.lease(second); lease != nil {
					return lease, nil
				}
				return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, controllerName)
			}}
			down := -1
			for ; second < 40 && down < 0; second++ {
				require.NoError(t, c.look(t.Context(), noon.Add(time.Duration(second)*time.Second)))
				if c.outage() != nil {
					down = second
				}
			}
			if down != test.down {
				t.Errorf("it is down at second %d, want %d", down, test.down)
			}
		})
	}
}

func TestAnOutageEndsWithTheNextRenewalAndAnErrorChangesNothing(t *testing.T) {
	lease, failure := leaseOf("a", noon.Add(-time.Hour), 15), error(nil)
	c := &controllerLease{get: func(context.Context) (*coordinationv1.Lease, error) { return lease, failure }}
	look := func(second int) error { return c.look(t.Context(), noon.Add(time.Duration(second)*time.Second)) }
	for second := range 5 {
		require.NoError(t, look(second))
	}
	first := c.outage()
	if first == nil || !strings.Contains(first.message, "has not run since 2026-01-02T11:00:00Z") || !strings.Contains(first.message, "Deployment kube-queue-controller") {
		t.Fatalf("the outage is %+v", first)
	}
	failure = errors.New("no answer")
	if err := look(6); err == nil || c.outage() != first {
		t.Errorf("after an error (%v) the outage is %+v", err, c.outage())
	}
	failure, lease = nil, leaseOf("b", noon.Add(7*time.Second), 15)
	if err := look(7); err != nil || c.outage() != nil {
		t.Errorf("after a renewal the outage is %+v, %v", c.outage(), err)
	}
}
