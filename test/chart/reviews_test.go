package chart

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/pkg/controller/reviews"
)

// Reviews are on only where it can be proved that they come from an API server.
func TestReviewsAreOnWhereTheyCanBeProved(t *testing.T) {
	const kinds = "apps/v1/Deployment,admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy"
	const served = kinds + ",admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
	const ca = "--set=reviews.clientCASecret=api-servers"
	for _, test := range []struct {
		name string
		args []string
		// by is policy, certificate or empty.
		by string
	}{
		{"1.36", []string{"--kube-version", "1.36.0"}, "policy"},
		{"a cluster of 1.36", []string{"--api-versions", served}, "policy"},
		{"a cluster of 1.36 that has the policies switched off", []string{"--api-versions", kinds}, ""},
		{"1.35", []string{"--kube-version", "1.35.4"}, ""},
		{"1.36 where a webhook holds jobs", []string{"--set=holdPolicies.by=webhook"}, "policy"},
		{"1.36 where nothing holds jobs", []string{"--set=holdPolicies.by=none"}, "policy"},
		{"a CA", []string{ca}, "certificate"},
		{"1.30 with a CA", []string{"--kube-version", "1.30.0", ca}, "certificate"},
		{"not wanted", []string{"--set=reviews.enabled=false"}, ""},
		{"not wanted, with a CA", []string{"--set=reviews.enabled=false", ca}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			rendered := render(t, test.args...)
			deployment := the(t, rendered, "Deployment", controller)
			args := fmt.Sprint(container(t, deployment)["args"])
			for what, got := range map[string]bool{
				"a webhook":             has(rendered, "MutatingWebhookConfiguration", reviews.Configuration),
				"a Service":             has(rendered, "Service", reviews.Service),
				"its Secret":            has(rendered, "Secret", reviews.Service),
				"a port":                strings.Contains(args, "--webhook-bind-address=:9443"),
				"rights on its webhook": strings.Contains(the(t, rendered, "ClusterRole", controller).text, "resourceNames: ["+reviews.Configuration+"]"),
				"rights on its Secret":  strings.Contains(the(t, rendered, "Role", controller).text, "resourceNames: ["+reviews.Service+"]"),
			} {
				if got != (test.by != "") {
					t.Errorf("there is %s: %t", what, got)
				}
			}
			for what, got := range map[string]bool{
				"a policy":            has(rendered, "MutatingAdmissionPolicy", reviews.Configuration),
				"a binding":           has(rendered, "MutatingAdmissionPolicyBinding", reviews.Configuration),
				"a Secret":            has(rendered, "Secret", reviews.ProofSecret),
				"rights on the proof": strings.Contains(the(t, rendered, "Role", controller).text, reviews.ProofSecret),
			} {
				if got != (test.by == "policy") {
					t.Errorf("there is %s: %t", what, got)
				}
			}
			for what, got := range map[string]bool{
				"a flag":   strings.Contains(args, "--webhook-client-ca-file=/etc/kube-queue-client-ca/ca.crt"),
				"a volume": strings.Contains(deployment.text, "secretName: api-servers") && strings.Contains(deployment.text, "mountPath: /etc/kube-queue-client-ca"),
			} {
				if got != (test.by == "certificate") {
					t.Errorf("there is %s: %t", what, got)
				}
			}
		})
	}
}

func has(rendered []object, wanted, name string) bool {
	_, is := kind(rendered, wanted)[name]
	return is
}

// A review that the webhook receives without a proof gets no answer.
func TestThePolicyProvesEachReviewThatTheWebhookAnswers(t *testing.T) {
	rendered := render(t)
	policy := the(t, rendered, "MutatingAdmissionPolicy", reviews.Configuration)
	rule := policy.list("spec", "matchConstraints", "resourceRules")[0]
	answered := []string{}
	for _, hook := range the(t, rendered, "MutatingWebhookConfiguration", reviews.Configuration).list("webhooks") {
		own := hook["rules"].([]any)[0].(map[string]any)
		answered = append(answered, texts(own["resources"])...)
		for _, field := range []string{"apiGroups", "apiVersions", "operations", "scope"} {
			if !reflect.DeepEqual(own[field], rule[field]) {
				t.Errorf("%v: %s is %v in the webhook, and %v in the policy", hook["name"], field, own[field], rule[field])
			}
		}
	}
	if !reflect.DeepEqual(answered, texts(rule["resources"])) {
		t.Errorf("the webhook answers %v, and the policy is for %v", answered, rule["resources"])
	}
	binding := the(t, rendered, "MutatingAdmissionPolicyBinding", reviews.Configuration)
	secret := the(t, rendered, "Secret", reviews.ProofSecret)
	if at(binding.Object, "spec.paramRef.name") != secret.GetName() || at(binding.Object, "spec.paramRef.namespace") != secret.GetNamespace() {
		t.Errorf("the binding is for %v", at(binding.Object, "spec.paramRef"))
	}
	if secret.Object["data"] != nil || secret.Object["stringData"] != nil {
		t.Error("the chart writes a proof, which everybody who can read the chart knows")
	}
}

// The right is for one Secret only: RBAC restricts a creation by apply to a name.
func TestTheControllerMayReadOnlyItsSecrets(t *testing.T) {
	rendered, secrets := render(t), 0
	for _, rule := range append(the(t, rendered, "Role", controller).some(t, "rules"), the(t, rendered, "ClusterRole", controller).some(t, "rules")...) {
		for _, resource := range texts(rule["resources"]) {
			names := texts(rule["resourceNames"])
			if resource == "secrets" {
				secrets++
			}
			if resource == "secrets" && !reflect.DeepEqual(names, []string{reviews.Service}) && !reflect.DeepEqual(names, []string{reviews.ProofSecret}) {
				t.Errorf("the rule is %v", rule)
			}
		}
	}
	if secrets == 0 {
		t.Error("no rule is about Secrets")
	}
}
