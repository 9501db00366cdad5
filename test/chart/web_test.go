package chart

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const pages = "kube-queue-web"

// A compromised program can only use the tokens of its callers.
func TestThePagesHaveNoRightsAndNoToken(t *testing.T) {
	for _, o := range render(t) {
		if o.GetName() == pages {
			t.Errorf("%v is installed by default", o)
		}
	}
	rendered := render(t, "--set", "web.enabled=true,web.hosts={queue.example.com},web.tlsSecret=queue-tls,networkPolicy.enabled=true")
	var deployment appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(the(t, rendered, "Deployment", pages).Object, &deployment); err != nil {
		t.Fatal(err)
	}
	pod := deployment.Spec.Template.Spec
	if mounts := pod.AutomountServiceAccountToken; mounts == nil || *mounts || pod.ServiceAccountName != pages || the(t, rendered, "ServiceAccount", pages).Object["automountServiceAccountToken"] != false {
		t.Errorf("the pods of %s have a token", pod.ServiceAccountName)
	}
	for _, v := range pod.Volumes {
		if v.Projected != nil || v.Secret != nil && v.Secret.SecretName != "queue-tls" {
			t.Errorf("volume %s can have a token", v.Name)
		}
	}
	for _, o := range rendered {
		if o.GetKind() != "RoleBinding" && o.GetKind() != "ClusterRoleBinding" {
			continue
		}
		for _, subject := range o.list("subjects") {
			if group, _ := subject["name"].(string); group == pages || strings.HasPrefix(group, "system:serviceaccounts") {
				t.Errorf("%v gives rights to %s", o, group)
			}
		}
	}
	labels := deployment.Spec.Template.Labels
	if selector := the(t, rendered, "Service", pages).labels("spec", "selector"); !chooses(selector, labels) {
		t.Errorf("the Service chooses by %v", selector)
	}
	if selector := the(t, rendered, "NetworkPolicy", pages).labels("spec", "podSelector", "matchLabels"); !chooses(selector, labels) {
		t.Errorf("the NetworkPolicy chooses by %v", selector)
	}
	expectRefused(t, []refused{{"pages without a host", "web: {enabled: true}", []string{"web.hosts is empty"}}})
}
