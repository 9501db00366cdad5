package chart

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/test/audit"
	"kube-queue.dev/kube-queue/test/require"
)

// right is a right of a role, such as "patch kubeflow.org/tfjobs".
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

// more returns the rights that are in a and not in b.
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

// notAnnotated queues no kind by the annotation alone.
const notAnnotated = "--set-json=annotationExtensions=[]"

// onlyEnabled is the argument that limits rights and policies to what is set. everything removes this limit.
const onlyEnabled, everything = "--set=rbac.grant=enabled", "--set=rbac.grant=all"

func TestAnEnabledKindAddsOnlyItsRightsAndPolicies(t *testing.T) {
	none := rights(the(t, render(t, onlyEnabled, notAnnotated, "--set-json", "enabledExtensions=[]"), "ClusterRole", "kube-queue-job-extensions"))
	for _, adapter := range registry.All() {
		bundle := bundleOf(t, adapter.Kind())
		for _, name := range append([]string{adapter.Kind().Name}, adapter.Kind().OtherNames...) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				rendered := render(t, onlyEnabled, notAnnotated, "--set", "enabledExtensions={"+name+"}")
				byAnnotation := render(t, onlyEnabled, "--set-json", "enabledExtensions=[]", "--set", "annotationExtensions={"+name+"}")
				if got, want := rights(the(t, byAnnotation, "ClusterRole", "kube-queue-job-extensions")), rights(the(t, rendered, "ClusterRole", "kube-queue-job-extensions")); !maps.Equal(got, want) {
					t.Errorf("queued by the annotation it has rights %v, want %v", got, want)
				}
				if got, want := slices.Sorted(maps.Keys(kind(byAnnotation, "MutatingAdmissionPolicy"))), slices.Sorted(maps.Keys(kind(rendered, "MutatingAdmissionPolicy"))); !slices.Equal(got, want) {
					t.Errorf("queued by the annotation it has policies %v, want %v", got, want)
				}
				got := more(rights(the(t, rendered, "ClusterRole", "kube-queue-job-extensions")), none)
				if !slices.Equal(got, bundle.rights) {
					t.Errorf("rights %v, want %v", got, bundle.rights)
				}
				policies := holdPolicies(rendered)
				if names := slices.Sorted(maps.Keys(policies)); !slices.Equal(names, []string{bundle.hold, "kube-queue-managed-namespace"}) {
					t.Errorf("policies %v", names)
				}
				if managed := resourceRules(policies["kube-queue-managed-namespace"]); !slices.Equal(managed, []string{bundle.rule}) {
					t.Errorf("managed %v, want %v", managed, bundle.rule)
				}
				// Policies select the same versions of a kind.
				if held := resourceRules(policies[bundle.hold]); !slices.Equal(held, []string{bundle.rule}) {
					t.Errorf("held %v, want %v", held, bundle.rule)
				}
			})
		}
	}
}

// bundle has the policies and rights of a kind.
type bundle struct {
	rights []right
	// hold is the policy that holds its jobs.
	hold string
	// rule is the resource rule of that policy and of the policy for managed namespaces.
	rule string
}

// bundleOf returns the expected bundle of a kind, from its adapter and, for its status, from the
// audit checker.
func bundleOf(t *testing.T, kind framework.Kind) bundle {
	t.Helper()
	jobs := kind.Group + "/" + kind.Resource
	granted := on(jobs, "get", "list", "patch", "watch")
	view, err := audit.ViewOf(kind.Group, kind.Version, kind.Resource)
	require.NoError(t, err)
	if view.ShowsQueuing {
		granted = append(granted, on(jobs+"/status", "patch")...)
	}
	if kind.Remains != "" {
		granted = append(granted, on(kind.Group+"/"+kind.Remains, "list", "watch")...)
	}
	if related := kind.Related; related.Resource != "" {
		granted = append(granted, on(related.Group+"/"+related.Resource, "list", "watch")...)
	}
	slices.Sort(granted)
	return bundle{
		rights: granted,
		hold:   "kube-queue-hold-" + strings.ToLower(kind.Kind),
		rule:   kind.Group + " " + strings.Join(append([]string{kind.Version}, kind.OlderVersions...), ",") + " " + kind.Resource,
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

func TestAQuotaBackendAddsOnlyItsRights(t *testing.T) {
	role := func(args ...string) map[right]bool {
		return rights(the(t, render(t, args...), "ClusterRole", "kube-queue-controller"))
	}
	trees, quotas, all := role(onlyEnabled), role(onlyEnabled, "--set", "controller.quotaBackend=resourcequota"), role()
	const ofTrees, ofQuotas = "scheduling.sigs.k8s.io/elasticquotatrees", "list /resourcequotas"
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
		t.Errorf("by default the controller may not %v", lacking)
	}
}

func TestCountedDevicesBringTheirRights(t *testing.T) {
	for name, resources := range map[string][]string{
		"kube-queue-job-extensions": {"deviceclasses", "resourceclaims", "resourceclaimtemplates"},
		"kube-queue-controller":     {"deviceclasses", "resourceclaims"},
	} {
		role := func(args ...string) map[right]bool { return rights(the(t, render(t, args...), "ClusterRole", name)) }
		var want []right
		for _, resource := range resources {
			want = append(want, on("resource.k8s.io/"+resource, "list", "watch")...)
		}
		slices.Sort(want)
		none := role(onlyEnabled, "--set-json", `devices.types=[{"resource": "example.com/gpu", "type": "gpu/any"}]`)
		if got := more(role(onlyEnabled, countClaims), none); !slices.Equal(got, want) {
			t.Errorf("counted devices bring %s %v, want %v", name, got, want)
		}
		all := role(everything)
		for _, r := range want {
			if none[r] || !all[r] {
				t.Errorf("%s, %s: granted without counted devices %v, with all rights %v", name, r, none[r], all[r])
			}
		}
	}
}

// An operator gets the verb for its own kinds, and only if it is listed.
func TestListedOperatorsOperateTheirKinds(t *testing.T) {
	bound := func(args ...string) map[string][]string {
		rendered := render(t, args...)
		found := map[string][]string{}
		for name, binding := range kind(rendered, "ClusterRoleBinding") {
			if !strings.HasPrefix(name, "kube-queue-operator-") {
				continue
			}
			role := the(t, rendered, "ClusterRole", name)
			rules := role.list("rules")
			if got := rights(role); len(rules) != 1 || len(got) != 1 || !got["operate scheduling.x-k8s.io/queueunits"] {
				t.Errorf("%s grants %v", name, got)
			}
			for _, subject := range binding.list("subjects") {
				account := fmt.Sprint(subject["kind"], " ", subject["namespace"], "/", subject["name"])
				found[account] = append(found[account], texts(rules[0]["resourceNames"])...)
				slices.Sort(found[account])
			}
		}
		return found
	}
	if found := bound(); len(found) > 0 {
		t.Errorf("without a list, %v are operators", found)
	}
	list := `--set-json=managedNamespaces.operators=[
		{"namespace": "ray", "serviceAccount": "a", "kinds": ["rayjobv1alpha1", "raycluster"]},
		{"namespace": "ray", "serviceAccount": "a", "kinds": ["raycluster"]},
		{"namespace": "mpi", "serviceAccount": "b", "kinds": ["mpiv1", "mpiv2beta1"]}]`
	want := map[string][]string{"ServiceAccount ray/a": {"rayclusters.ray.io", "rayjobs.ray.io"}, "ServiceAccount mpi/b": {"mpijobs.kubeflow.org"}}
	if got := bound(list); !reflect.DeepEqual(got, want) {
		t.Errorf("operators are %v, want %v", got, want)
	}
	if got := bound(list, "--set=rbac.create=false"); len(got) > 0 {
		t.Errorf("without roles, operators are %v", got)
	}
}

// countClaims has a setting that counts the devices of a DeviceClass.
const countClaims = `--set-json=devices.classes={"gpu.example.com": "example.com/gpu"}`

// With all rights, users can enable any kind by editing the Deployments.
func TestAllRightsAndPoliciesAreThoseOfAllKinds(t *testing.T) {
	// Pods are excluded: a pod with the mark waits until job-extensions removes its gate.
	every := strings.Join(slices.DeleteFunc(registry.Names(), func(name string) bool { return name == "pod" }), ",")
	enabled := rights(the(t, render(t, onlyEnabled, notAnnotated, countClaims, "--set", "enabledExtensions={"+every+"}"), "ClusterRole", "kube-queue-job-extensions"))
	all := rights(the(t, render(t, everything, notAnnotated), "ClusterRole", "kube-queue-job-extensions"))
	if lacking, extra := more(enabled, all), more(all, enabled); len(lacking)+len(extra) > 0 {
		t.Errorf("lacking %v, extra %v", lacking, extra)
	}
	names := func(args ...string) []string {
		return slices.Sorted(maps.Keys(holdPolicies(render(t, args...))))
	}
	if got, want := names(everything), names(onlyEnabled, notAnnotated, "--set", "enabledExtensions={"+every+"}"); !slices.Equal(got, want) {
		t.Errorf("policies %v, want %v", got, want)
	}
}

// holdPolicies are the policies that hold jobs.
func holdPolicies(rendered []object) map[string]object {
	policies := kind(rendered, "MutatingAdmissionPolicy")
	delete(policies, "kube-queue-reviews")
	return policies
}

func TestPoliciesAreRenderedIfTheAPIServerHasThem(t *testing.T) {
	const kinds = "apps/v1/Deployment"
	const validating, mutating = "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy", "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
	const both, switchedOff = kinds + "," + validating + "," + mutating, kinds + "," + validating
	tests := []struct {
		name string
		args []string
		// policy and webhook are what holds jobs. unit is whether a policy guards units.
		policy, webhook, unit bool
	}{
		{"without a cluster by the version: 1.36 has both", []string{"--kube-version", "1.36.0"}, true, false, true},
		{"a provider's version counts as that", []string{"--kube-version", "v1.36.3-gke.100"}, true, false, true},
		{"1.35 holds jobs by a webhook", []string{"--kube-version", "1.35.9"}, false, true, true},
		{"a provider's version of 1.30", []string{"--kube-version", "v1.30.14-eks-1"}, false, true, true},
		{"a cluster with both", []string{"--kube-version", "1.36.0", "--api-versions", both}, true, false, true},
		{"a cluster of 1.36 that has them switched off", []string{"--kube-version", "1.36.0", "--api-versions", switchedOff}, false, true, true},
		{"a webhook on 1.36", []string{"--api-versions", both, "--set", "holdPolicies.by=webhook"}, false, true, true},
		{"both", []string{"--api-versions", both, "--set", "holdPolicies.by=both"}, true, true, true},
		{"policies for a cluster that is not there", []string{"--kube-version", "1.30.1", "--set", "holdPolicies.by=policy,unitPolicy.enabled=true"}, true, false, true},
		{"requested by the older value", []string{"--kube-version", "1.30.1", "--set", "holdPolicies.enabled=true,unitPolicy.enabled=true"}, true, false, true},
		{"the older value where by is set", []string{"--set", "holdPolicies.enabled=false,holdPolicies.by=webhook"}, false, true, true},
		{"none", []string{"--set", "holdPolicies.by=none"}, false, false, true},
		{"not wanted by the older value", []string{"--set", "holdPolicies.enabled=false,unitPolicy.enabled=false"}, false, false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			rendered := render(t, test.args...)
			hold, unit := holdPolicies(rendered), kind(rendered, "ValidatingAdmissionPolicy")
			_, managed := hold["kube-queue-managed-namespace"]
			_, units := unit["kube-queue-units"]
			if len(hold) > 0 != test.policy || units != test.unit || managed != test.policy {
				t.Errorf("%d policies that hold, managed namespaces are %t, one that guards units is there: %t", len(hold), managed, units)
			}
			for _, object := range [][2]string{{"MutatingWebhookConfiguration", "kube-queue-hold"}, {"Service", "job-extensions-webhook"}, {"Secret", "job-extensions-webhook"}} {
				if _, there := kind(rendered, object[0])[object[1]]; there != test.webhook {
					t.Errorf("%s %s is there: %t", object[0], object[1], there)
				}
			}
			_, reviews := kind(rendered, "MutatingWebhookConfiguration")["kube-queue-reviews"]
			if _, guarded := unit["kube-queue-webhooks"]; guarded != (test.webhook || reviews) {
				t.Errorf("the policy that limits the programs to caBundle is there: %t", guarded)
			}
			if _, editor := kind(rendered, "ClusterRole")["kube-queue-editor"]; editor != test.unit {
				t.Errorf("the role that writes units is there: %t, the policy that guards them: %t", editor, test.unit)
			}
			bindings := kind(rendered, "MutatingAdmissionPolicyBinding")
			delete(bindings, "kube-queue-reviews")
			for name, binding := range bindings {
				if policy, _ := binding.Object["spec"].(map[string]any)["policyName"].(string); hold[policy].Object == nil {
					t.Errorf("the binding %s is for %q, which is not there", name, policy)
				}
			}
			if len(bindings) != len(hold) {
				t.Errorf("%d bindings for %d policies", len(bindings), len(hold))
			}
		})
	}
}

func TestPoliciesAreRefusedWhereTheyAreNotServed(t *testing.T) {
	for _, by := range []string{"policy", "both"} {
		_, err := template(t, chart, "--kube-version", "1.34.0", "--api-versions", "apps/v1/Deployment", "--set", "holdPolicies.by="+by)
		require.ErrorSays(t, err, "holdPolicies.by="+by, "set holdPolicies.by=webhook")
	}
	_, err := template(t, chart, "--kube-version", "1.29.9")
	require.ErrorSays(t, err, ">= 1.30.0-0")
}

// A policy and a webhook hold the same jobs.
func TestRulesAndConditionsOfPoliciesAndWebhooksAreTheSame(t *testing.T) {
	rendered := render(t, "--kube-version", "1.36.0", "--set", "holdPolicies.by=both,enabledExtensions={job,pod}")
	hooks := map[string]map[string]any{}
	for _, hook := range the(t, rendered, "MutatingWebhookConfiguration", "kube-queue-hold").Object["webhooks"].([]any) {
		hook := hook.(map[string]any)
		name, _, _ := strings.Cut(hook["name"].(string), ".")
		hooks["kube-queue-"+name] = hook
	}
	policies := holdPolicies(rendered)
	if len(policies) != len(hooks) || len(policies) < 16 {
		t.Errorf("%d policies and %d webhooks", len(policies), len(hooks))
	}
	for name, policy := range policies {
		spec := policy.Object["spec"].(map[string]any)
		match := spec["matchConstraints"].(map[string]any)
		hook := hooks[name]
		for field, want := range map[string]any{
			"rules": match["resourceRules"], "matchConditions": spec["matchConditions"], "matchPolicy": match["matchPolicy"],
			"failurePolicy": spec["failurePolicy"], "reinvocationPolicy": spec["reinvocationPolicy"], "timeoutSeconds": float64(5),
		} {
			if got := hook[field]; !reflect.DeepEqual(normal(t, got), normal(t, want)) {
				t.Errorf("%s: %s is %v, want %v", name, field, got, want)
			}
		}
	}
	for _, name := range []string{"kube-queue-managed-namespace", "kube-queue-managed-pod"} {
		selector := hooks[name]["namespaceSelector"]
		binding := kind(rendered, "MutatingAdmissionPolicyBinding")[name].Object["spec"].(map[string]any)
		if want := binding["matchResources"].(map[string]any)["namespaceSelector"]; !reflect.DeepEqual(selector, want) {
			t.Errorf("%s: namespaces of the webhook are %v, of the policy %v", name, selector, want)
		}
	}
}

func TestPodsAreQueuedOnlyIfTheyAreEnabled(t *testing.T) {
	const mutating, validating = "MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"
	role := func(args ...string) map[right]bool {
		return rights(the(t, render(t, args...), "ClusterRole", "kube-queue-job-extensions"))
	}
	pods := []string{"--set", "enabledExtensions={pod}"}
	if got, want := more(role(pods...), role()), on("/pods", "delete", "patch", "watch"); !slices.Equal(got, want) {
		t.Errorf("rights %v, want %v", got, want)
	}
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"off":                     {[]string{everything}, []string{"gate"}}, // it refuses the labels of the gate
		"on":                      {pods, []string{"fence-pod", "gate", "gate-pod", "growth-pod", "job-extensions-pods", "managed-pod"}},
		"alone":                   {append(pods, notAnnotated), []string{"fence-pod", "gate", "gate-pod", "growth-pod", "job-extensions-pods", "managed-pod"}},
		"on with all rights":      {append(pods, everything), []string{"fence-pod", "gate", "gate-pod", "growth-pod", "job-extensions-pods", "managed-pod"}},
		"not managed":             {append(pods, "--set", "managedNamespaces.kinds={job}"), []string{"gate", "gate-pod", "growth-pod", "job-extensions-pods"}},
		"no managed namespaces":   {append(pods, "--set", "managedNamespaces.enabled=false"), []string{"gate", "gate-pod", "growth-pod", "job-extensions-pods"}},
		"without a fence":         {append(pods, "--set", "managedNamespaces.fence=off"), []string{"gate", "gate-pod", "growth-pod", "job-extensions-pods", "managed-pod"}},
		"with the webhook":        {append(pods, "--set", "holdPolicies.by=webhook"), []string{"fence-pod", "gate", "job-extensions-pods"}},
		"without the unit policy": {append(pods, "--set", "unitPolicy.enabled=false"), []string{"fence-pod", "gate", "gate-pod", "growth-pod", "job-extensions-pods", "managed-pod"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rendered := render(t, test.args...)
			var found []string
			for _, of := range []string{mutating, validating} {
				bindings := kind(rendered, of+"Binding")
				for name, policy := range kind(rendered, of) {
					if _, bound := bindings[name]; !bound {
						t.Errorf("%s has no binding", name)
					}
					// The API server refuses a policy without a rule.
					if len(policy.list("spec", "matchConstraints", "resourceRules")) == 0 {
						t.Errorf("%s has no rule", name)
					}
					if short := strings.TrimPrefix(name, "kube-queue-"); strings.HasPrefix(short, "gate") || strings.Contains(short, "pod") {
						found = append(found, short)
					}
				}
			}
			slices.Sort(found)
			if !slices.Equal(found, test.want) {
				t.Errorf("policies %v, want %v", found, test.want)
			}
		})
	}
}

// normal returns a value with the types of encoding/json.
func normal(t *testing.T, value any) any {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	var read any
	require.NoError(t, json.Unmarshal(text, &read))
	return read
}

// With cert-manager, the programs may not write certificates.
func TestCertManagerMakesTheCertificate(t *testing.T) {
	rendered := render(t, "--set", "holdPolicies.by=webhook,holdPolicies.webhook.certManager.enabled=true")
	for program, role := range map[string]string{"job-extensions": "kube-queue-job-extensions", "kube-queue-controller": "kube-queue-controller"} {
		if _, there := kind(rendered, "Secret")[program+"-webhook"]; there {
			t.Errorf("the chart creates the Secret of cert-manager for %s", program)
		}
		the(t, rendered, "Certificate", program+"-webhook")
		the(t, rendered, "Issuer", program+"-webhook")
		for right := range rights(the(t, rendered, "ClusterRole", role)) {
			if strings.Contains(string(right), "webhookconfigurations") {
				t.Errorf("%s may %s", program, right)
			}
		}
		require.Says(t, program, fmt.Sprint(the(t, rendered, "Deployment", program).Object), "--webhook-manage-certificate=false")
	}
	other := render(t, "--set", "holdPolicies.by=webhook,holdPolicies.webhook.certManager.enabled=true,holdPolicies.webhook.certManager.issuerRef.name=internal")
	if _, there := kind(other, "Issuer")["job-extensions-webhook"]; there {
		t.Error("an Issuer is created although another one is named")
	}
}

func TestOnlyThePolicyOfUnitsCanBeLeftOut(t *testing.T) {
	policies := kind(render(t, "--set", "enabledExtensions={pod},unitPolicy.enabled=false,holdPolicies.by=both"), "ValidatingAdmissionPolicy")
	for _, name := range []string{"gate", "job-extensions-pods", "job-extensions", "programs", "webhooks", "queues"} {
		if _, there := policies["kube-queue-"+name]; !there {
			t.Errorf("there is no policy kube-queue-%s", name)
		}
	}
	if _, there := policies["kube-queue-units"]; there {
		t.Error("the policy of units is there")
	}
}

func TestJobExtensionsIsLimitedInEveryVersion(t *testing.T) {
	rendered := render(t, notAnnotated, "--set", "enabledExtensions={mpiv1,job}")
	for _, rule := range the(t, rendered, "ValidatingAdmissionPolicy", "kube-queue-job-extensions").some(t, "spec", "matchConstraints", "resourceRules") {
		if got := texts(rule["apiVersions"]); !slices.Equal(got, []string{"*"}) {
			t.Errorf("%v: limited in versions %v, and its role is for all", rule["resources"], got)
		}
	}
}
