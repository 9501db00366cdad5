package visibility

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	visibilityv1alpha1 "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/resourcequota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/test/require"
)

// lowered returns the message of the remedy that lowers the request; empty if there is none.
func lowered(answer *visibilityv1alpha1.QueueUnitReviewStatus) string {
	for _, r := range answer.WouldAdmit {
		if r.Type == visibilityv1alpha1.LowerRequest {
			return r.Message
		}
	}
	return ""
}

func TestALowerRequestIsWithinAllLimits(t *testing.T) {
	const so = ", so that the unit can fit once enough quota is unused"
	for _, c := range []struct {
		name      string
		root, max map[string]resource.Quantity
		min       map[string]resource.Quantity
		request   []any
		fixed     bool
		want      string
	}{
		{"a limit above is smaller", amounts("cpu", "6"), amounts("cpu", "8"), nil, []any{"cpu", 9000}, false,
			"request at most 6 cpu" + so},
		{"only a limit above is exceeded", amounts("cpu", "6"), nil, nil, []any{"cpu", 9000}, false,
			"request at most 6 cpu" + so},
		{"two resources", amounts("cpu", "6"), amounts("memory", "4Gi"), nil, []any{"cpu", 9000, "memory", 8 << 30}, false,
			"request at most 6 cpu and at most 4Gi memory" + so},
		{"nothing of one of them is allowed", amounts("cpu", "6"), amounts("memory", "0"), nil, []any{"cpu", 9000, "memory", 8 << 30}, false, ""},
		{"no jobs are allowed", amounts("cpu", "6"), amounts(quota.JobsResource, "0"), nil, []any{"cpu", 9000}, false, ""},
		{"the guarantee", amounts("cpu", "6"), amounts("cpu", "5"), amounts("cpu", "3"), []any{"cpu", 9000}, true,
			"request at most 3 cpu" + so},
		{"nothing is guaranteed", amounts("cpu", "6"), nil, nil, []any{"cpu", 2000}, true, ""},
		{"nothing is guaranteed, and the max is exceeded", amounts("cpu", "6"), nil, nil, []any{"cpu", 9000}, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := newCluster(t, tree.Node{Name: "root", Max: c.root, Children: []tree.Node{
				{Name: "a", Namespaces: []string{"a"}, Max: c.max, Min: c.min}}}, tree.Options{})
			cl.submit("a/one", cl.request(c.request...), func(u *scheduler.Unit) { u.Demand.Preemptible = !c.fixed })
			if got := lowered(cl.why("a/one", everything())); got != c.want {
				t.Errorf("the request is lowered by %q, want %q", got, c.want)
			}
		})
	}
}

func TestALowerRequestIsWithinAllHardLimits(t *testing.T) {
	names := resources.NewNames()
	backend := resourcequota.New(names)
	for name, hard := range map[string]corev1.ResourceList{
		"p": {"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi")},
		"q": {"cpu": resource.MustParse("3"), "pods": resource.MustParse("5")},
	} {
		used := corev1.ResourceList{}
		for key := range hard {
			used[key] = resource.Quantity{}
		}
		backend.Observe(resourcequota.QuotaSeen{Quota: &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name},
			Spec: corev1.ResourceQuotaSpec{Hard: hard}, Status: corev1.ResourceQuotaStatus{Hard: hard, Used: used}}})
	}
	c := &cluster{t: t, core: scheduler.New(scheduler.Options{}), names: names, now: time.Unix(1_000_000, 0), units: map[string]*scheduler.Unit{}}
	c.core.Apply(c.now, scheduler.QuotaChanged{Backend: backend})
	c.core.Apply(c.now, scheduler.Listed{})
	use, err := resourcequota.Weigh(resourcequota.Pods{Count: 1, Requests: corev1.ResourceList{"cpu": resource.MustParse("9"), "memory": resource.MustParse("9Gi")}})
	require.NoError(t, err)
	requests, err := backend.Vector(use)
	require.NoError(t, err)
	c.submit("a/one", requests.With(names.ID(quota.JobsResource), 1))
	if got, want := lowered(c.why("a/one", everything())), "request at most 3 cpu and at most 8Gi memory, "; !strings.HasPrefix(got, want) {
		t.Errorf("the request is lowered by %q, want %q", got, want)
	}
}

// Both the max and the guarantee of a quota may be below the request. The max refuses it first.
func TestARaiseIncludesTheMinIfTheQuotaGuaranteesNothing(t *testing.T) {
	cl := newCluster(t, tree.Node{Name: "root", Children: []tree.Node{{Name: "a", Namespaces: []string{"a"}, Max: amounts("cpu", "7")}}}, tree.Options{})
	cl.submit("a/one", cl.request("cpu", 8000), func(u *scheduler.Unit) { u.Demand.Preemptible = false })
	answer := cl.why("a/one", everything())
	want := "RaiseQuota: an administrator raises min of cpu in quota root/a from 0 to 8, and max of cpu in quota root/a from 7 to 8"
	if got := messages(answer); got != want {
		t.Fatalf("would admit: %s, want %s", got, want)
	}
	cl.do(answer.WouldAdmit[0])
	if !cl.runs("a/one") {
		t.Error("it still waits")
	}
}
