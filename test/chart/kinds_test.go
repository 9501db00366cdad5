package chart

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/extensions/registry"
	"sigs.k8s.io/yaml"
)

// A kind that is new has to be added to the chart too.
func TestTheChartKnowsTheKindsThatJobExtensionsKnows(t *testing.T) {
	var schema map[string]any
	if err := yaml.Unmarshal([]byte(read(t, chart+"/values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	var known []string
	for _, name := range at(schema, "$defs.extensions.items.enum").([]any) {
		known = append(known, name.(string))
	}
	want := registry.Names()
	slices.Sort(want)
	slices.Sort(known)
	if !slices.Equal(known, want) {
		t.Errorf("values.schema.json knows %v, job-extensions %v", known, want)
	}
	var deploy map[string]any
	if err := yaml.Unmarshal([]byte(read(t, root+"/hack/deploy-values.yaml")), &deploy); err != nil {
		t.Fatal(err)
	}
	var enabled []string
	for _, name := range deploy["enabledExtensions"].([]any) {
		enabled = append(enabled, name.(string))
	}
	adapters, err := registry.Parse(strings.Join(enabled, ","))
	if err != nil {
		t.Fatal(err)
	}
	if len(adapters) != len(registry.All()) {
		t.Errorf("hack/deploy-values.yaml enables %v of %d kinds", enabled, len(registry.All()))
	}
}

// right is what a role allows, as "patch kubeflow.org/tfjobs".
type right string

func rights(role object) map[right]bool {
	found := map[right]bool{}
	for _, rule := range role.list("rules") {
		for _, verb := range texts(rule["verbs"]) {
			for _, group := range texts(rule["apiGroups"]) {
				for _, resource := range texts(rule["resources"]) {
					found[right(verb+" "+group+"/"+resource)] = true
				}
			}
		}
	}
	return found
}

func texts(list any) []string {
	var found []string
	items, _ := list.([]any)
	for _, item := range items {
		if text, isText := item.(string); isText {
			found = append(found, text)
		}
	}
	return found
}

// more are the rights that a has and b has not.
func more(a, b map[right]bool) []right {
	var found []right
	for r := range a {
		if !b[r] {
			found = append(found, r)
		}
	}
	slices.Sort(found)
	return found
}

func on(resource string, verbs ...string) []right {
	var found []right
	for _, verb := range verbs {
		found = append(found, right(verb+" "+resource))
	}
	return found
}

func onJobs(resource string) []right { return on(resource, "get", "list", "patch", "watch") }

// onlyEnabled has nothing prepared but what is enabled.
const onlyEnabled = "--set=rbac.grant=enabled"

func TestAKindBringsItsRightsAndItsPolicyAndNoOthers(t *testing.T) {
	withStatus := func(resource string) []right {
		return append(onJobs(resource), on(resource+"/status", "patch")...)
	}
	tests := []struct {
		kind   string
		rights []right
		hold   string
		// managed is the rule of the managed namespaces.
		managed string
	}{
		{"tfjob", withStatus("kubeflow.org/tfjobs"), "tfjob", "kubeflow.org v1 tfjobs"},
		{"pytorchjob", withStatus("kubeflow.org/pytorchjobs"), "pytorchjob", "kubeflow.org v1 pytorchjobs"},
		{"mpiv1", withStatus("kubeflow.org/mpijobs"), "mpijob", "kubeflow.org v1 mpijobs"},
		{"mpiv2beta1", withStatus("kubeflow.org/mpijobs"), "mpijob", "kubeflow.org v2beta1 mpijobs"},
		{"sparkapp", onJobs("sparkoperator.k8s.io/sparkapplications"), "sparkapplication", "sparkoperator.k8s.io v1beta2 sparkapplications"},
		{"job", onJobs("batch/jobs"), "job", "batch v1 jobs"},
		{"jobset", onJobs("jobset.x-k8s.io/jobsets"), "jobset", "jobset.x-k8s.io v1alpha2 jobsets"},
		{"rayjob", append(onJobs("ray.io/rayjobs"), on("ray.io/rayclusters", "list", "watch")...), "rayjob", "ray.io v1,v1alpha1 rayjobs"},
		{"rayjobv1alpha1", append(onJobs("ray.io/rayjobs"), on("ray.io/rayclusters", "list", "watch")...), "rayjob", "ray.io v1,v1alpha1 rayjobs"},
		{"raycluster", onJobs("ray.io/rayclusters"), "raycluster", "ray.io v1,v1alpha1 rayclusters"},
		{"workflow", onJobs("argoproj.io/workflows"), "workflow", "argoproj.io v1alpha1 workflows"},
	}
	none := rights(the(t, render(t, onlyEnabled, "--set-json", "enabledExtensions=[]"), "ClusterRole", "kube-queue-job-extensions"))
	var all []string
	for _, test := range tests {
		all = append(all, test.kind)
		t.Run(test.kind, func(t *testing.T) {
			t.Parallel()
			rendered := render(t, onlyEnabled, "--set", "enabledExtensions={"+test.kind+"}")
			got := more(rights(the(t, rendered, "ClusterRole", "kube-queue-job-extensions")), none)
			slices.Sort(test.rights)
			if !slices.Equal(got, test.rights) {
				t.Errorf("rights %v, want %v", got, test.rights)
			}
			policies := kind(rendered, "MutatingAdmissionPolicy")
			if names := slices.Sorted(maps.Keys(policies)); !slices.Equal(names, []string{"kube-queue-hold-" + test.hold, "kube-queue-managed-namespace"}) {
				t.Errorf("policies %v", names)
			}
			if managed := resourceRules(policies["kube-queue-managed-namespace"]); !slices.Equal(managed, []string{test.managed}) {
				t.Errorf("managed %v, want %v", managed, test.managed)
			}
			// The versions of a kind are the same to both.
			if held := resourceRules(policies["kube-queue-hold-"+test.hold]); !slices.Equal(held, []string{test.managed}) {
				t.Errorf("held %v, want %v", held, test.managed)
			}
		})
	}
	slices.Sort(all)
	known := registry.Names()
	slices.Sort(known)
	if !slices.Equal(all, known) {
		t.Errorf("tried %v, known are %v", all, known)
	}
}

func resourceRules(policy object) []string {
	var found []string
	for _, rule := range policy.list("spec", "matchConstraints", "resourceRules") {
		found = append(found, strings.Join(texts(rule["apiGroups"]), ",")+" "+strings.Join(texts(rule["apiVersions"]), ",")+" "+
			strings.Join(texts(rule["resources"]), ","))
	}
	return found
}

func TestAQuotaBackendBringsItsRightsAndNoOthers(t *testing.T) {
	role := func(args ...string) map[right]bool {
		return rights(the(t, render(t, args...), "ClusterRole", "kube-queue-controller"))
	}
	trees, quotas, all := role(onlyEnabled), role(onlyEnabled, "--set", "controller.queueGroupPlugin=resourcequota"), role()
	const ofTrees, ofQuotas = "scheduling.sigs.k8s.io/elasticquotatrees", "list /pods"
	for r := range trees {
		if r == ofQuotas {
			t.Errorf("with elasticquota the controller may %s", r)
		}
	}
	if !quotas[ofQuotas] || !quotas["watch /resourcequotas"] {
		t.Errorf("with resourcequota the controller may only %v", quotas)
	}
	for r := range quotas {
		if strings.Contains(string(r), ofTrees) {
			t.Errorf("with resourcequota the controller may %s", r)
		}
	}
	if lacking := append(more(trees, all), more(quotas, all)...); len(lacking) > 0 {
		t.Errorf("with all rights the controller may not %v", lacking)
	}
}

// Somebody who edits the Deployments may switch to any kind.
func TestAllRightsAndPoliciesAreThoseOfAllKinds(t *testing.T) {
	every := strings.Join(registry.Names(), ",")
	enabled := rights(the(t, render(t, onlyEnabled, "--set", "enabledExtensions={"+every+"}"), "ClusterRole", "kube-queue-job-extensions"))
	all := rights(the(t, render(t), "ClusterRole", "kube-queue-job-extensions"))
	if lacking, extra := more(enabled, all), more(all, enabled); len(lacking)+len(extra) > 0 {
		t.Errorf("lacking %v, extra %v", lacking, extra)
	}
	names := func(args ...string) []string {
		return slices.Sorted(maps.Keys(kind(render(t, args...), "MutatingAdmissionPolicy")))
	}
	if got, want := names(), names(onlyEnabled, "--set", "enabledExtensions={"+every+"}"); !slices.Equal(got, want) {
		t.Errorf("policies %v, want %v", got, want)
	}
}

func TestPoliciesComeWithTheAPIServerThatHasThem(t *testing.T) {
	const kinds = "apps/v1/Deployment"
	const validating, mutating = "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy", "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
	tests := []struct {
		name       string
		args       []string
		hold, unit bool
	}{
		{"without a cluster by the version: 1.36 has both", []string{"--kube-version", "1.36.0"}, true, true},
		{"a provider's version counts as that", []string{"--kube-version", "v1.36.3-gke.100"}, true, true},
		{"1.35 holds no jobs", []string{"--kube-version", "1.35.9"}, false, true},
		{"1.29 has neither", []string{"--kube-version", "1.29.1"}, false, false},
		{"a cluster with both", []string{"--kube-version", "1.36.0", "--api-versions", kinds + "," + validating + "," + mutating}, true, true},
		{"a cluster of 1.36 that has them switched off", []string{"--kube-version", "1.36.0", "--api-versions", kinds}, false, false},
		{"asked for, whatever there is", []string{"--kube-version", "1.29.1", "--set", "holdPolicies.enabled=true,unitPolicy.enabled=true"}, true, true},
		{"not wanted", []string{"--set", "holdPolicies.enabled=false,unitPolicy.enabled=false"}, false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			rendered := render(t, test.args...)
			hold, unit := kind(rendered, "MutatingAdmissionPolicy"), kind(rendered, "ValidatingAdmissionPolicy")
			_, managed := hold["kube-queue-managed-namespace"]
			if len(hold) > 0 != test.hold || len(unit) > 0 != test.unit || managed != test.hold {
				t.Errorf("%d policies that hold, managed namespaces are %t, %d that guard units", len(hold), managed, len(unit))
			}
			for name, binding := range kind(rendered, "MutatingAdmissionPolicyBinding") {
				if policy, _ := binding.Object["spec"].(map[string]any)["policyName"].(string); hold[policy].Object == nil {
					t.Errorf("the binding %s is for %q, which is not there", name, policy)
				}
			}
			if bindings := kind(rendered, "MutatingAdmissionPolicyBinding"); len(bindings) != len(hold) {
				t.Errorf("%d bindings for %d policies", len(bindings), len(hold))
			}
		})
	}
}
