package controller

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// If the API server finds a fault in an expression by the schema's types, it only warns in the status of the policy.
func TestTheExpressionsOfTheUnitPolicyMatchTheSchema(t *testing.T) {
	policies := kubernetes.NewForConfigOrDie(cluster.Config()).AdmissionregistrationV1().ValidatingAdmissionPolicies()
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		policy, err := policies.Get(ctx, "kube-queue-units", metav1.GetOptions{})
		if err != nil || policy.Status.ObservedGeneration != policy.Generation || policy.Status.TypeChecking == nil {
			return false, err
		}
		for _, warning := range policy.Status.TypeChecking.ExpressionWarnings {
			t.Errorf("%s: %s", warning.FieldRef, warning.Warning)
		}
		return true, nil
	})
	if err != nil {
		t.Fatalf("the types of policy kube-queue-units: %v", err)
	}
}
