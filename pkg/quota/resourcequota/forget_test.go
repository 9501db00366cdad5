package resourcequota

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/test/require"
)

// forget forgets everything except what the backend and the vectors use.
func forget(b *Backend, used ...resources.Vector) {
	var ids resources.IDs
	b.Uses(&ids)
	for _, v := range used {
		ids.AddVector(v)
	}
	b.Forget(ids, func(quota.NodeID) bool { return false })
	b.names.Forget(ids)
}

func TestOnlyDimensionsThatNothingUsesAreForgotten(t *testing.T) {
	b, g := bench(t, "0")
	rare := func(name corev1.ResourceName) resources.Vector {
		use, err := Weigh(Pods{Count: 1, Requests: corev1.ResourceList{name: resource.MustParse("1")}})
		require.NoError(t, err)
		v, err := b.Vector(use)
		require.NoError(t, err)
		return v
	}
	admitted, pods, waiting, ended := rare("a.example/admitted"), rare("a.example/pods"), rare("a.example/waiting"), rare("a.example/ended")
	c := &quota.Charge{Demand: quota.Demand{Requests: admitted}, Pods: pods}
	g.Charge(c)
	if r := g.Fits(quota.Demand{Requests: ended}); r != nil {
		t.Fatal(r.Message())
	}
	forget(b, waiting)
	var names []string
	for id := range resources.ID(20) {
		if name := b.names.Name(id); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	want := []string{"count/pods", "kube-queue/max-jobs", "pods", "q/cpu", "requests.a.example/admitted", "requests.a.example/pods", "requests.a.example/waiting"}
	if !slices.Equal(names, want) {
		t.Errorf("names %v, want %v", names, want)
	}
	if len(b.dimensions) != 5 {
		t.Errorf("dimensions %v, want those of the 5 names that pods use", b.dimensions)
	}
	// What the space knew about the forgotten resource does not count for the one that gets its ID.
	again := cpus(t, b, "5")
	last := func(v resources.Vector) resources.ID { return v[len(v)-1].ID }
	if last(again) != last(ended) {
		t.Fatalf("cpu has ID %d, want %d again", last(again), last(ended))
	}
	if r := g.Fits(quota.Demand{Requests: again}); r == nil || r.Reason != wellknown.ReasonExceedsMaxQuota {
		t.Errorf("5 cpu under a quota of 4: %+v", r)
	}
}
