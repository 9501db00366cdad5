package resourcequota

import (
	"slices"
	"testing"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/test/require"
)

// The copy has the same charges, which can be uncharged without changing the original.
func TestARaisedBackendHasMoreRoomAndTheSameCharged(t *testing.T) {
	b, g := bench(t, "0")
	held := &quota.Charge{Demand: quota.Demand{Requests: cpus(t, b, "3")}}
	g.Charge(held)
	wanted := quota.Demand{Requests: cpus(t, b, "6")}
	refusal := g.Fits(wanted)
	if refusal == nil {
		t.Fatal("6 of 4 cpu fit")
	}
	raises := []quota.Raise{{Space: refusal.Lack.Space, By: 5000}}
	written, err := b.Written(raises)
	if want := (quota.Written{Quota: refusal.Node, Field: "hard", Resource: "cpu", From: 4000, To: 9000}); err != nil || len(written) != 1 || written[0] != want {
		t.Errorf("%+v, %v, want %+v", written, err, want)
	}
	raised, err := b.Raised(b.names.Clone(), raises)
	require.NoError(t, err)
	other := raised.Of(quota.Charged{Path: g.Path(), Charge: held})
	if got := raised.Room(refusal.Lack.Space); got != 6000 || other.Fits(wanted) != nil {
		t.Errorf("the room is %d, want 6 cpu", got)
	}
	other.Uncharge(held)
	if got := raised.Room(refusal.Lack.Space); got != 9000 {
		t.Errorf("after the release, the room is %d, want 9 cpu", got)
	}
	if got := b.Room(refusal.Lack.Space); got != 1000 {
		t.Errorf("the room of the original is %d, want 1 cpu", got)
	}
	if _, err := b.Raised(b.names.Clone(), []quota.Raise{{Space: quota.Space{Node: 99}, By: 1}}); err == nil {
		t.Error("a limit that does not exist is raised")
	}
}

func TestALimitThatADemandExceedsIsNotOneThatIsFullNow(t *testing.T) {
	b, g := bench(t, "3")
	reasons := func(refusals []*quota.Refusal) (reasons []wellknown.Reason) {
		for _, r := range refusals {
			reasons = append(reasons, r.Reason)
		}
		return reasons
	}
	for _, c := range []struct {
		cpu            string
		lacks, exceeds []wellknown.Reason
	}{
		{"1", nil, nil},
		{"4", []wellknown.Reason{wellknown.ReasonQuotaExceeded}, nil},
		{"5", nil, []wellknown.Reason{wellknown.ReasonExceedsMaxQuota}},
	} {
		d := quota.Demand{Requests: cpus(t, b, c.cpu)}
		if lacks, exceeds := reasons(b.Lacks(g, d)), reasons(b.Exceeds(g, d)); !slices.Equal(lacks, c.lacks) || !slices.Equal(exceeds, c.exceeds) {
			t.Errorf("a demand of %s cpu lacks %v and exceeds %v, want %v and %v", c.cpu, lacks, exceeds, c.lacks, c.exceeds)
		}
	}
}
