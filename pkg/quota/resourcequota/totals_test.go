package resourcequota

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/test/require"
)

func TestTotalsAreNamedAsUsersNameThem(t *testing.T) {
	b := New(resources.NewNames())
	for _, text := range []string{
		`{metadata: {namespace: a, name: q}, spec: {hard: {cpu: 4, requests.nvidia.com/gpu: 2}}, status: {hard: {cpu: 4, requests.nvidia.com/gpu: 2}, used: {}}}`,
		`{metadata: {namespace: a, name: lower}, spec: {hard: {requests.cpu: 3}}, status: {hard: {requests.cpu: 3}, used: {}}}`,
		`{metadata: {namespace: a, name: some}, spec: {hard: {cpu: 1}, scopes: [BestEffort]}, status: {hard: {cpu: 1}, used: {}}}`,
	} {
		object := new(corev1.ResourceQuota)
		require.NoError(t, yaml.UnmarshalStrict([]byte(text), object))
		b.Observe(QuotaSeen{Quota: object})
	}
	g := b.group("a")
	for _, class := range []Class{{}, {PriorityClass: "high"}} {
		use, err := Weigh(Pods{Class: class, Count: 2, Name: "worker", Requests: corev1.ResourceList{"cpu": resource.MustParse("500m")},
			Unset: map[corev1.ResourceName]string{"limits.cpu": "main"}})
		require.NoError(t, err)
		vector, err := b.Vector(use)
		require.NoError(t, err)
		g.Charge(&quota.Charge{Demand: quota.Demand{Requests: vector.With(b.jobs, 1)}})
	}
	use, err := Weigh(Pods{Count: 1, Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}})
	require.NoError(t, err)
	vector, err := b.Vector(use)
	require.NoError(t, err)
	g.Charge(&quota.Charge{Pods: vector, Unqueued: true})
	var got []string
	for _, u := range b.AggregatedUsage() {
		for _, a := range u.Used {
			got = append(got, fmt.Sprint(u.Path, " uses ", b.names.Name(a.ID), " ", a.Value))
		}
		for _, a := range u.Unqueued {
			got = append(got, fmt.Sprint(u.Path, " uses outside of the queue ", b.names.Name(a.ID), " ", a.Value))
		}
		for _, a := range u.Max {
			got = append(got, fmt.Sprint(u.Path, " may use ", b.names.Name(a.ID), " ", a.Value))
		}
		got = append(got, fmt.Sprint(u.Path, " has jobs ", u.Jobs))
	}
	slices.Sort(got)
	want := []string{"a has jobs 2", "a may use requests.cpu 3000", "a may use requests.nvidia.com/gpu 2",
		"a uses count/pods 5", "a uses outside of the queue count/pods 1", "a uses outside of the queue pods 1",
		"a uses outside of the queue requests.cpu 100", "a uses pods 5", "a uses requests.cpu 2100"}
	if !slices.Equal(got, want) {
		t.Errorf("the totals are\n%q, want\n%q", got, want)
	}
}

func TestASumThatIsTooLargeIsReportedAndIsTheLargestRequest(t *testing.T) {
	b := New(resources.NewNames())
	half, err := Weigh(Pods{Count: 1, Requests: corev1.ResourceList{"memory": *resource.NewQuantity(resources.MaxRequest/2+1, resource.BinarySI)}})
	require.NoError(t, err)
	_, err = b.Vector(half)
	require.NoError(t, err)
	vector, err := b.Vector(half, half)
	require.ErrorSays(t, err, "memory: the sum of the requests exceeds the largest possible request")
	if !slices.ContainsFunc(vector, func(a resources.Amount) bool { return a.Value == resources.MaxRequest }) {
		t.Errorf("the sum is %v", vector)
	}
}
