package requests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/test/require"
)

func TestPodNamesTheContainersThatSayNothing(t *testing.T) {
	const (
		all  = `resources: {limits: {cpu: 1, memory: 1Gi}}`
		none = `{requests.cpu: a, requests.memory: a, limits.cpu: a, limits.memory: a}`
	)
	tests := []struct{ name, spec, ranges, unset string }{
		{"a container without resources says nothing of any", `{containers: [{name: a}]}`, `[]`, none},
		{"limits are requests too", `{containers: [{name: a, ` + all + `}]}`, `[]`, `{}`},
		{"but requests are no limits", `{containers: [{name: a, resources: {requests: {cpu: 1, memory: 1Gi}}}]}`, `[]`, `{limits.cpu: a, limits.memory: a}`},
		{"a zero counts as set", `{containers: [{name: a, resources: {requests: {cpu: 0, memory: 0}, limits: {cpu: 0, memory: 0}}}]}`, `[]`, `{}`},
		{"a sidecar is asked like any other", `{containers: [{name: a, ` + all + `}], initContainers: [{name: b, restartPolicy: Always, resources: {requests: {cpu: 1}}}]}`, `[]`,
			`{requests.memory: b, limits.cpu: b, limits.memory: b}`},
		{"so are init containers, though they end before the others begin", `{containers: [{name: a, ` + all + `}], initContainers: [{name: b, resources: {limits: {cpu: 1}}}]}`, `[]`,
			`{requests.memory: b, limits.memory: b}`},
		{"all that say nothing are named, in the order in which they run", `{containers: [{name: a}, {name: b, ` + all + `}, {name: c, resources: {limits: {cpu: 1}}}], initContainers: [{name: d, resources: {limits: {cpu: 1}}}]}`, `[]`,
			`{requests.cpu: a, requests.memory: "d, a, c", limits.cpu: a, limits.memory: "d, a, c"}`},
		{"other resources are nobody's business", `{containers: [{name: a, resources: {limits: {cpu: 1, memory: 1Gi, nvidia.com/gpu: 1}}}, {name: b, ` + all + `}]}`, `[]`, `{}`},
		{"a LimitRange says it for them", `{containers: [{name: a}], initContainers: [{name: b}]}`, `[{type: Container, default: {cpu: 1, memory: 1Gi}, defaultRequest: {cpu: 1, memory: 1Gi}}]`, `{}`},
		{"as far as it goes", `{containers: [{name: a}]}`, `[{type: Container, defaultRequest: {cpu: 1}}, {type: PersistentVolumeClaim, max: {storage: 1Gi}}]`,
			`{requests.memory: a, limits.cpu: a, limits.memory: a}`},
		{"a pod that asks as a whole speaks for its containers", `{resources: {requests: {cpu: 1}}, containers: [{name: a}]}`, `[]`, `{}`},
		{"by a limit as well", `{resources: {limits: {memory: 1Gi}}, containers: [{name: a}]}`, `[]`, `{}`},
		{"but not when it requests nothing", `{resources: {}, containers: [{name: a}]}`, `[]`, none},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var want map[corev1.ResourceName]string
			require.NoError(t, yaml.UnmarshalStrict([]byte(test.unset), &want))
			size, err := Pod(templateOf(t, test.spec), "ns", clusterOf(t, test.ranges))
			require.NoError(t, err)
			if !equality.Semantic.DeepEqual(size.Unset, want) {
				t.Errorf("it is %v, not %v", size.Unset, want)
			}
		})
	}
}

func TestPodMatchesTheScopesOfQuotas(t *testing.T) {
	const asks = `containers: [{name: a, resources: {requests: {cpu: 1}}}]`
	term := func(kind, term string) string { return `{affinity: {` + kind + `: {` + term + `}}, ` + asks + `}` }
	const (
		required  = `requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: z}, {topologyKey: z%s}]`
		preferred = `preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: z}}, {weight: 1, podAffinityTerm: {topologyKey: z%s}}]`
		names     = `, namespaces: [other]`
		selector  = `, namespaceSelector: {matchLabels: {team: other}}`
	)
	tests := []struct{ name, spec, ranges, scopes string }{
		{"a pod that requests CPU matches none", `{` + asks + `}`, `[]`, `[]`},
		{"one without resources is of BestEffort", `{containers: [{name: a}]}`, `[]`, `[BestEffort]`},
		{"memory is as good as CPU", `{containers: [{name: a}, {name: b, resources: {requests: {memory: 1}}}]}`, `[]`, `[]`},
		{"zero amounts are none", `{containers: [{name: a, resources: {requests: {cpu: 0}, limits: {memory: 0}}}]}`, `[]`, `[BestEffort]`},
		{"a limit alone is enough", `{containers: [{name: a, resources: {requests: {cpu: 0}, limits: {cpu: 1}}}]}`, `[]`, `[]`},
		{"devices do not count", `{containers: [{name: a, resources: {limits: {nvidia.com/gpu: 1}, requests: {ephemeral-storage: 1Gi}}}]}`, `[]`, `[BestEffort]`},
		{"init containers do", `{containers: [{name: a}], initContainers: [{name: b, resources: {requests: {cpu: 1}}}]}`, `[]`, `[]`},
		{"so do the defaults of the namespace", `{containers: [{name: a}]}`, `[{type: Container, defaultRequest: {cpu: 1}}]`, `[]`},
		{"and what the pod requests at pod level", `{resources: {requests: {cpu: 1}}, containers: [{name: a}]}`, `[]`, `[]`},
		{"beside which its containers count for nothing", `{resources: {limits: {hugepages-2Mi: 2Mi}, requests: {cpu: 0, memory: 0}}, containers: [{name: a}]}`, `[]`, `[BestEffort]`},
		{"even when it requests nothing", `{resources: {}, ` + asks + `}`, `[]`, `[BestEffort]`},
		{"overhead does not count", `{runtimeClassName: sandbox, containers: [{name: a}]}`, `[]`, `[BestEffort]`},
		{"a pod with a deadline is Terminating", `{activeDeadlineSeconds: 60, ` + asks + `}`, `[]`, `[Terminating]`},
		{"pods of its own namespace make no scope", term("podAffinity", fmt.Sprintf(required, "")), `[]`, `[]`},
		{"nor does an affinity to nodes", `{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}, ` + asks + `}`, `[]`, `[]`},
		{"it must be near pods of a namespace", term("podAffinity", fmt.Sprintf(required, names)), `[]`, `[CrossNamespacePodAffinity]`},
		{"it must be near pods of some namespaces", term("podAffinity", fmt.Sprintf(required, selector)), `[]`, `[CrossNamespacePodAffinity]`},
		{"it would be near pods of a namespace", term("podAffinity", fmt.Sprintf(preferred, names)), `[]`, `[CrossNamespacePodAffinity]`},
		{"it must not be near pods of all namespaces", term("podAntiAffinity", fmt.Sprintf(required, ", namespaceSelector: {}")), `[]`, `[CrossNamespacePodAffinity]`},
		{"it would not be near pods of some namespaces", term("podAntiAffinity", fmt.Sprintf(preferred, selector)), `[]`, `[CrossNamespacePodAffinity]`},
		{"a pod may match all", `{activeDeadlineSeconds: 1, containers: [{name: a}], affinity: {podAffinity: {` + fmt.Sprintf(required, names) + `}}}`, `[]`,
			`[BestEffort, Terminating, CrossNamespacePodAffinity]`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var want []corev1.ResourceQuotaScope
			require.NoError(t, yaml.UnmarshalStrict([]byte(test.scopes), &want))
			size, err := Pod(templateOf(t, test.spec), "ns", clusterOf(t, test.ranges))
			require.NoError(t, err)
			if !slices.Equal(size.Scopes, want) {
				t.Errorf("they are %v, not %v", size.Scopes, want)
			}
		})
	}
}

// Scopes and unset resources of a pod with its defaults follow from its containers and
// the LimitRanges.
func TestWhatQuotasWeighFollowsFromTheTemplate(t *testing.T) {
	possible := 0
	rapid.Check(t, func(t *rapid.T) {
		template, c := drawTemplate(t), drawCluster(t)
		template.Spec.Resources = nil
		for _, limitRange := range c.Ranges {
			limitRange.Spec.Limits[0].Max = nil
		}
		size, err := Pod(template, "ns", c)
		if err != nil {
			return
		}
		possible++
		bestEffort, silent := true, map[corev1.ResourceName][]string{}
		for _, container := range slices.Concat(template.Spec.InitContainers, template.Spec.Containers) {
			own := container.Resources
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				var requests, limits []corev1.ResourceList
				for _, limitRange := range c.Ranges {
					requests, limits = append(requests, limitRange.Spec.Limits[0].DefaultRequest), append(limits, limitRange.Spec.Limits[0].Default)
				}
				for key, saying := range map[corev1.ResourceName]bool{
					"requests." + name: says(name, &bestEffort, requests, own.Requests, own.Limits),
					"limits." + name:   says(name, &bestEffort, limits, own.Limits),
				} {
					if !saying {
						silent[key] = append(silent[key], container.Name)
					}
				}
			}
		}
		if slices.Contains(size.Scopes, corev1.ResourceQuotaScopeBestEffort) != bestEffort {
			t.Fatalf("scopes are %v, and that it is of BestEffort is %v", size.Scopes, bestEffort)
		}
		unset := map[corev1.ResourceName]string{}
		for name, containers := range silent {
			unset[name] = strings.Join(containers, ", ")
		}
		if !equality.Semantic.DeepEqual(size.Unset, unset) {
			t.Fatalf("what is not set is %v, not %v", size.Unset, unset)
		}
	})
	if possible == 0 {
		t.Errorf("none of the pods was possible")
	}
}

// says reports whether one of the container's own lists names the resource or, if none does, one of the defaults. An
// amount above 0, in the first own list that names it or in any default, ends BestEffort.
func says(name corev1.ResourceName, bestEffort *bool, defaults []corev1.ResourceList, own ...corev1.ResourceList) bool {
	for _, list := range own {
		if quantity, given := list[name]; given {
			*bestEffort = *bestEffort && quantity.Sign() <= 0
			return true
		}
	}
	said := false
	for _, list := range defaults {
		if quantity, given := list[name]; given {
			*bestEffort = *bestEffort && quantity.Sign() <= 0
			said = true
		}
	}
	return said
}

func TestNamesOfContainersAreCutToTheirRoom(t *testing.T) {
	names := func(count, length int) []string {
		all := make([]string, count)
		for i := range all {
			all[i] = strings.Repeat("x", length)
		}
		return all
	}
	tests := []struct {
		name  string
		names []string
		want  string
	}{
		{"a few are all listed", []string{"a", "b", "c"}, "a, b, c"},
		{"so are as many as there is room for", names(2, 127), strings.Repeat("x", 127) + ", " + strings.Repeat("x", 127)},
		{"of more the number is listed", names(2, 128), strings.Repeat("x", 128) + " and 1 more"},
		{"however many", names(100000, 60), strings.Join(names(3, 60), ", ") + " and 99997 more"},
		{"a name that no container may have is only counted", names(1, 300), "1 with very long names"},
		{"as is one without room for the rest", names(3, 250), "3 with very long names"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := joinNames(test.names); got != test.want || len(got) > maxNames {
				t.Errorf("it is %q, of %d letters", got, len(got))
			}
		})
	}
}
