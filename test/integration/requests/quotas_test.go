package requests

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/pkg/requests"
	"kube-queue.dev/kube-queue/test/harness"
)

// strict is a namespace with one ResourceQuota, and a pod that the quota refuses.
type strict struct {
	quota, refused string
}

// demand has a large quota that requires each container to set all four values.
var demand = strict{
	`{hard: {requests.cpu: 1M, requests.memory: 1P, limits.cpu: 1M, limits.memory: 1P}}`,
	`{containers: [{resources: {limits: {example.com/gpu: 1}, requests: {cpu: 0}}}]}`,
}

// byScope have quotas that admit no pod of one scope.
var byScope = map[corev1.ResourceQuotaScope]strict{
	corev1.ResourceQuotaScopeBestEffort:     {`{hard: {pods: 0}, scopes: [BestEffort]}`, `{containers: [{resources: {limits: {cpu: 0, memory: 0}}}]}`},
	corev1.ResourceQuotaScopeNotBestEffort:  {`{hard: {pods: 0}, scopes: [NotBestEffort]}`, `{containers: [{resources: {limits: {cpu: 1}}}]}`},
	corev1.ResourceQuotaScopeTerminating:    {`{hard: {pods: 0}, scopes: [Terminating]}`, `{activeDeadlineSeconds: 9, containers: [{}]}`},
	corev1.ResourceQuotaScopeNotTerminating: {`{hard: {pods: 0}, scopes: [NotTerminating]}`, `{containers: [{}]}`},
	corev1.ResourceQuotaScopeCrossNamespacePodAffinity: {`{hard: {pods: 0}, scopes: [CrossNamespacePodAffinity]}`,
		`{containers: [{}], affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, namespaces: [other]}]}}}`},
}

// opposites are pairs of scopes. Each pod matches exactly one of a pair.
var opposites = map[corev1.ResourceQuotaScope]corev1.ResourceQuotaScope{
	corev1.ResourceQuotaScopeNotBestEffort:  corev1.ResourceQuotaScopeBestEffort,
	corev1.ResourceQuotaScopeNotTerminating: corev1.ResourceQuotaScopeTerminating,
}

// beginStrict creates a namespace and waits until its quota is in effect.
func beginStrict(t *testing.T, with strict, ranges []string) *namespace {
	t.Helper()
	n := begin(t, ranges...)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "strict"}}
	var refused corev1.PodSpec
	for text, into := range map[string]any{with.quota: &quota.Spec, with.refused: &refused} {
		must(t, yaml.UnmarshalStrict([]byte(text), into))
	}
	named(&refused)
	quotas := client.CoreV1().ResourceQuotas(n.name)
	_, err := quotas.Create(t.Context(), quota, metav1.CreateOptions{})
	must(t, err)
	harness.Eventually(t, patience, "the quota "+with.quota+" refuses a pod", func() (bool, string) {
		current, err := quotas.Get(t.Context(), quota.Name, metav1.GetOptions{})
		if err == nil && len(current.Status.Used) == 0 {
			// The cluster may have no quota controller.
			current.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: nothingOf(quota.Spec.Hard)}
			_, err = quotas.UpdateStatus(t.Context(), current, metav1.UpdateOptions{})
		}
		if err != nil {
			return false, err.Error()
		}
		refusal, err := n.refusal(t.Context(), refused)
		return refusal != "", fmt.Sprint(err)
	})
	return n
}

func nothingOf(list corev1.ResourceList) corev1.ResourceList {
	none := corev1.ResourceList{}
	for name := range list {
		none[name] = resource.Quantity{}
	}
	return none
}

// refusal returns why the quota of the namespace refuses the pod, or "".
func (n *namespace) refusal(ctx context.Context, spec corev1.PodSpec) (string, error) {
	_, err := client.CoreV1().Pods(n.name).Create(ctx, n.pod(spec), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil {
		return "", nil
	}
	_, why, byQuota := strings.Cut(err.Error(), " quota: strict")
	if !apierrors.IsForbidden(err) || !byQuota {
		return "", err
	}
	return why, nil
}

func TestQuotasRefuseTheExpectedPods(t *testing.T) {
	tests := []struct {
		name   string
		ranges []string
	}{
		{"no LimitRange", nil},
		{"some defaults", []string{`[{type: Container, default: {cpu: 4}, defaultRequest: {cpu: 1, memory: 100Mi}}]`}},
		{"defaults of nothing", []string{`[{type: Container, defaultRequest: {cpu: 0, memory: 0}}]`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			demanding, scoped := beginStrict(t, demand, test.ranges), map[corev1.ResourceQuotaScope]*namespace{}
			for scope, with := range byScope {
				scoped[scope] = beginStrict(t, with, test.ranges)
			}
			refused, passed := map[string]int{}, map[string]int{}
			try := func(rt rapid.TB, spec corev1.PodSpec) {
				size, err := requests.Pod(&corev1.PodTemplateSpec{Spec: spec}, demanding.name, demanding)
				if err != nil {
					return
				}
				count := func(quota string, refusal bool) {
					if refusal {
						refused[quota]++
					} else {
						passed[quota]++
					}
				}
				count("demands", tryDemand(t.Context(), rt, demanding, spec, size))
				for scope, n := range scoped {
					count(string(scope), tryScope(t.Context(), rt, n, scope, spec, size))
				}
			}
			rapid.Check(t, func(rt *rapid.T) { try(rt, drawWeighed(rt)) })
			for seed := range fixedDraws {
				try(t, rapid.Custom(drawWeighed).Example(seed))
			}
			t.Logf("refused: %v, let in: %v", refused, passed)
			if test.ranges == nil && (len(refused) != len(byScope)+1 || len(passed) != len(byScope)+1) {
				t.Errorf("the pods do not show all")
			}
		})
	}
}

// tryDemand compares the containers that lack a value that the quota requires.
func tryDemand(ctx context.Context, t rapid.TB, n *namespace, spec corev1.PodSpec, size requests.Size) (refused bool) {
	t.Helper()
	refusal, err := n.refusal(ctx, spec)
	must(t, err)
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(size.Unset)) {
		containers := strings.Split(size.Unset[name], ", ")
		slices.Sort(containers)
		missing = append(missing, string(name)+" for: "+strings.Join(containers, ","))
	}
	want := ""
	if missing != nil {
		want = ": must specify " + strings.Join(missing, "; ")
	}
	if refusal != want {
		t.Fatalf("the quota says %q, not %q\n%s", refusal, want, text(spec))
	}
	return refusal != ""
}

// tryScope compares whether a quota of the scope refuses the pod.
func tryScope(ctx context.Context, t rapid.TB, n *namespace, scope corev1.ResourceQuotaScope, spec corev1.PodSpec, size requests.Size) (refused bool) {
	t.Helper()
	refusal, err := n.refusal(ctx, spec)
	must(t, err)
	matches := slices.Contains(size.Scopes, scope)
	if opposite, isOpposite := opposites[scope]; isOpposite {
		matches = !slices.Contains(size.Scopes, opposite)
	}
	if matches != (refusal != "") {
		t.Fatalf("that the pod matches %s is %v of scopes %v, and the quota says %q\n%s", scope, matches, size.Scopes, refusal, text(spec))
	}
	return refusal != ""
}
