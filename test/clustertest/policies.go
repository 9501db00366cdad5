package clustertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"kube-queue.dev/kube-queue/pkg/controller/reviews"
)

// mark is the annotation that marks a job.
const mark = "scheduling.x-k8s.io/suspend"

// WaitForPolicies waits until each installed policy is in effect for all of its resources that are served.
func (c *Cluster) WaitForPolicies(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, installTimeout, fmt.Errorf("the policies did not take effect within %v", installTimeout))
	defer cancel()
	policies, err := c.policies(ctx)
	if err != nil || len(policies) == 0 {
		return err
	}
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return err
	}
	managed, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "kube-queue-probe-", Labels: map[string]string{"kube-queue/managed": "true"},
	}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	for _, policy := range policies {
		if err = c.waitForPolicy(ctx, policy, managed.Name); err != nil {
			break
		}
	}
	return errors.Join(err, client.CoreV1().Namespaces().Delete(ctx, managed.Name, metav1.DeleteOptions{}))
}

// waitForPolicy waits until all probes of the policy pass. Managed probes use the namespace
// managed.
func (c *Cluster) waitForPolicy(ctx context.Context, p policy, managed string) error {
	all, err := probes()
	if err != nil {
		return err
	}
	known := false
	for _, probe := range all {
		if probe.policy != p.name {
			continue
		}
		known = true
		if !p.isFor(probe.resource) {
			continue
		}
		namespace, annotations := Namespace, map[string]string{mark: "true"}
		if probe.managed {
			namespace, annotations = managed, nil
		}
		if err := c.waitForProbe(ctx, probe, namespace, annotations); err != nil {
			return fmt.Errorf("policy %s, for %s: %w", p.name, probe.resource, err)
		}
	}
	if !known {
		return fmt.Errorf("package clustertest has no probe for policy %s, which matches no known kind of job; add a probe", p.name)
	}
	return nil
}

// policy is a mutating or validating admission policy.
type policy struct {
	name string
	// rules select the resources of the policy.
	rules []admissionregistrationv1.NamedRuleWithOperations
}

func (p policy) isFor(resource schema.GroupVersionResource) bool {
	return slices.ContainsFunc(p.rules, func(r admissionregistrationv1.NamedRuleWithOperations) bool {
		return slices.Contains(r.APIGroups, resource.Group) && slices.Contains(r.Resources, resource.Resource)
	})
}

// policies returns the policies of kube-queue in the cluster.
func (c *Cluster) policies(ctx context.Context) ([]policy, error) {
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return nil, err
	}
	ours := metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=kube-queue"}
	var policies []policy
	mutating, err := client.AdmissionregistrationV1().MutatingAdmissionPolicies().List(ctx, ours)
	if err != nil && !apierrors.IsNotFound(err) { // older API servers do not serve them
		return nil, err
	}
	if err == nil {
		for _, p := range mutating.Items {
			if p.Name == reviews.Configuration {
				continue // it is about questions, and holds nothing
			}
			policies = append(policies, policy{p.Name, p.Spec.MatchConstraints.ResourceRules})
		}
	}
	webhooks, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().List(ctx, ours)
	if err != nil {
		return nil, err
	}
	for _, configuration := range webhooks.Items {
		if configuration.Name == reviews.Configuration {
			continue // it answers questions, and holds nothing
		}
		for _, w := range configuration.Webhooks {
			policies = append(policies, policyOf(w))
		}
	}
	validating, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(ctx, ours)
	if err != nil {
		return nil, err
	}
	bindings, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().List(ctx, ours)
	if err != nil {
		return nil, err
	}
	denies := map[string]bool{}
	for _, b := range bindings.Items {
		denies[b.Spec.PolicyName] = slices.Contains(b.Spec.ValidationActions, admissionregistrationv1.Deny)
	}
	for _, p := range validating.Items {
		if !denies[p.Name] {
			continue // no response shows whether it is in effect
		}
		policies = append(policies, policy{p.Name, p.Spec.MatchConstraints.ResourceRules})
	}
	return policies, nil
}

// policyOf returns the policy that a webhook replaces.
func policyOf(w admissionregistrationv1.MutatingWebhook) policy {
	name, _, _ := strings.Cut(w.Name, ".")
	found := policy{name: "kube-queue-" + name}
	for _, rule := range w.Rules {
		found.rules = append(found.rules, admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: rule})
	}
	return found
}

func (c *Cluster) serves(resource schema.GroupVersionResource) (bool, error) {
	client, err := discovery.NewDiscoveryClientForConfig(c.admin)
	if err != nil {
		return false, err
	}
	list, err := client.ServerResourcesForGroupVersion(resource.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, r := range list.APIResources {
		if r.Name == resource.Resource {
			return true, nil
		}
	}
	return false, nil
}

func (c *Cluster) waitForProbe(ctx context.Context, probe probe, namespace string, annotations map[string]string) error {
	client, err := dynamic.NewForConfig(c.admin)
	if err != nil {
		return err
	}
	object := probe.object.DeepCopy()
	object.SetName("probe")
	object.SetAnnotations(annotations)
	var last error
	err = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		// Discovery may still list a CRD that was just deleted.
		served, err := c.serves(probe.resource)
		if err != nil || !served {
			return !served, err
		}
		created, err := client.Resource(probe.resource).Namespace(namespace).
			Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationIgnore})
		last = err
		return probe.acts(created, err), nil
	})
	if err != nil {
		return errors.Join(fmt.Errorf("is not in effect: %w", err), last)
	}
	return nil
}
