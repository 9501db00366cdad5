package resourcequota

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/test/require"
)

// bench returns a backend with one quota of 4 cpu, whose status reports this much as used.
func bench(t *testing.T, used string) (*Backend, *group) {
	t.Helper()
	object := new(corev1.ResourceQuota)
	text := `{metadata: {namespace: a, name: q}, spec: {hard: {cpu: 4}}, status: {hard: {cpu: 4}, used: {cpu: ` + used + `}}}`
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), object))
	b := New(resources.NewNames())
	b.Observe(QuotaSeen{Quota: object})
	return b, b.group("a")
}

func cpus(t *testing.T, b *Backend, amount string) resources.Vector {
	t.Helper()
	use, err := Weigh(Pods{Count: 1, Requests: corev1.ResourceList{"cpu": resource.MustParse(amount)}})
	require.NoError(t, err)
	vector, err := b.Vector(use)
	require.NoError(t, err)
	return vector
}

func TestTheFiguresOfARefusalAreThoseOfTheTruthThatRefuses(t *testing.T) {
	for _, c := range []struct {
		name, status    string
		charged         string // a released job
		made, others    string // what its pods, and others', are seen to use
		requested, says string
	}{
		{"a job whose pods are not there yet", "0", "3", "", "", "2", "requested 2, used or reserved 3 of hard limit 4"},
		{"a job whose pods the status knows, and nobody has seen yet", "3", "3", "", "", "2", "requested 2, used or reserved 3 of hard limit 4"},
		{"a job whose pods are there", "3", "3", "3", "", "2", "requested 2, used or reserved 3 of hard limit 4"},
		{"somebody else's pod", "1500m", "", "", "1500m", "3", "requested 3, used or reserved 1500m of hard limit 4"},
		{"somebody else's pod that the status does not know yet", "0", "", "", "1500m", "3", "requested 3, used or reserved 1500m of hard limit 4"},
		{"somebody else's pod that only the status knows", "1500m", "", "", "", "3", "requested 3, used or reserved 1500m of hard limit 4"},
		{"a pod that the status still counts beside what a job is yet to make", "1", "2", "", "", "2", "requested 2, used or reserved 3 of hard limit 4"},
		{"a job that has grown", "3500m", "2", "3500m", "", "1", "requested 1, used or reserved 3500m of hard limit 4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, g := bench(t, c.status)
			mine, others := &quota.Charge{}, &quota.Charge{Unqueued: true}
			if c.charged != "" {
				mine.Demand.Requests = cpus(t, b, c.charged)
			}
			if c.made != "" {
				mine.Pods = cpus(t, b, c.made)
			}
			if c.others != "" {
				others.Pods = cpus(t, b, c.others)
			}
			g.Charge(mine)
			g.Charge(others)
			r := g.Fits(quota.Demand{Requests: cpus(t, b, c.requested)})
			if r == nil || r.Reason != wellknown.ReasonQuotaExceeded || !strings.Contains(r.Message(), "insufficient cpu in ResourceQuota a/q: "+c.says) {
				t.Errorf("refused with %+v", r)
			}
		})
	}
}

func TestPodsThatWaitAtAGateAreAlreadyInTheStatus(t *testing.T) {
	b, g := bench(t, "4")
	demand := quota.Demand{Requests: cpus(t, b, "3"), PodsExist: true}
	if r := g.Fits(demand); r != nil {
		t.Errorf("refused with %+v", r)
	}
	g.Charge(&quota.Charge{Demand: quota.Demand{Requests: cpus(t, b, "2")}})
	if r := g.Fits(demand); r == nil || !strings.Contains(r.Message(), "requested 3, used or reserved 2 of hard limit 4") {
		t.Errorf("refused with %+v", r)
	}
	// A waiting unit is tried again when this room grows, no matter what the status says.
	b, g = bench(t, "4")
	held := &quota.Charge{Demand: quota.Demand{Requests: cpus(t, b, "2")}}
	g.Charge(held)
	lack := g.Fits(demand).Lack
	if b.Room(lack.Space) >= lack.Amount {
		t.Errorf("there is room for %+v", lack)
	}
	frees := false
	g.Spaces(held, func(space quota.Space) { frees = frees || space == lack.Space })
	if g.Uncharge(held); !frees || b.Room(lack.Space) < lack.Amount {
		t.Errorf("after the end of the other unit, there is no room for %+v, or nobody is told", lack)
	}
	// An object counts as soon as it exists, both in the status and by observation.
	b, g = bench(t, "4")
	object := new(corev1.ResourceQuota)
	require.NoError(t, yaml.UnmarshalStrict([]byte(`{metadata: {namespace: a, name: q}, spec: {hard: {count/pods: 2}}, status: {hard: {count/pods: 2}, used: {count/pods: 2}}}`), object))
	b.Observe(QuotaSeen{Quota: object})
	use, err := Weigh(Pods{Count: 2})
	require.NoError(t, err)
	pods, err := b.Vector(use)
	require.NoError(t, err)
	g.Charge(&quota.Charge{Pods: pods, Unqueued: true})
	refusal := g.Fits(quota.Demand{Requests: pods})
	if r := g.Fits(quota.Demand{Requests: pods, PodsExist: true}); r != nil || refusal == nil {
		t.Errorf("pods that exist are refused with %+v, others with %+v", r, refusal)
	} else if g.StillRefuses(quota.Demand{Requests: pods, PodsExist: true}, refusal.Cause()) {
		t.Error("pods that exist are still refused")
	}
	// A quota that is created later does not remove them.
	b, g = bench(t, "4")
	use, err = Weigh(Pods{Count: 1, Unset: map[corev1.ResourceName]string{"requests.cpu": "main"}})
	require.NoError(t, err)
	unset, err := b.Vector(use)
	require.NoError(t, err)
	refusal = g.Fits(quota.Demand{Requests: unset})
	if r := g.Fits(quota.Demand{Requests: unset, PodsExist: true}); r != nil || refusal == nil || refusal.Reason != wellknown.ReasonInvalidRequest {
		t.Errorf("pods that exist are refused with %+v, others with %+v", r, refusal)
	} else if g.StillRefuses(quota.Demand{Requests: unset, PodsExist: true}, refusal.Cause()) {
		t.Error("pods that exist are still refused")
	}
	if demand.PodsExist = false; demand.Key() == (quota.Demand{Requests: demand.Requests, PodsExist: true}).Key() {
		t.Error("units with and without pods have the same shape")
	}
}
