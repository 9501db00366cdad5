package jobextensions

import (
	"context"
	"fmt"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/requests"
	"kube-queue.dev/kube-queue/test/clustertest"
)

// sidecars is a namespace in which each pod gets a sidecar.
const sidecars = "sidecars"

// injectSidecars creates the namespace, and a policy that does what a webhook would do.
func injectSidecars(t *testing.T, c *clustertest.Cluster) {
	t.Helper()
	core, err := kubernetes.NewForConfig(c.Config())
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	meta := metav1.ObjectMeta{Name: sidecars}
	_, err = core.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: meta}, metav1.CreateOptions{})
	must(err)
	registration := core.AdmissionregistrationV1()
	failurePolicy, scope := admissionv1.Fail, admissionv1.NamespacedScope
	_, err = registration.MutatingAdmissionPolicies().Create(t.Context(), &admissionv1.MutatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.MutatingAdmissionPolicySpec{
		FailurePolicy: &failurePolicy, ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}, Scope: &scope},
		}}}},
		Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{Expression: `[JSONPatch{op: "add", path: "/spec/containers/-", value: {
			"name": dyn("sidecar"), "image": dyn("sidecar"), "resources": dyn({"requests": {"cpu": "250m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}})}}]`}}},
	}}, metav1.CreateOptions{})
	must(err)
	_, err = registration.MutatingAdmissionPolicyBindings().Create(t.Context(), &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{
		PolicyName:     sidecars,
		MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: sidecars}}},
	}}, metav1.CreateOptions{})
	must(err)
	t.Cleanup(func() {
		ctx := context.Background()
		if err := registration.MutatingAdmissionPolicyBindings().Delete(ctx, sidecars, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if err := registration.MutatingAdmissionPolicies().Delete(ctx, sidecars, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		removeNamespace(ctx, t, core)
	})
	probe := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "main"}}}}
	until(t.Context(), t, "pods get a sidecar", func(ctx context.Context) error {
		pod, err := core.CoreV1().Pods(sidecars).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && len(pod.Spec.Containers) != 2 {
			err = fmt.Errorf("the pod has %d containers", len(pod.Spec.Containers))
		}
		return err
	})
}

// removeNamespace removes the namespace, so that the test can run again.
func removeNamespace(ctx context.Context, t *testing.T, core kubernetes.Interface) {
	if err := core.CoreV1().Namespaces().Delete(ctx, sidecars, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
		return
	}
	until(ctx, t, "the namespace is gone", func(ctx context.Context) error {
		_, err := core.CoreV1().Namespaces().Get(ctx, sidecars, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the namespace exists: %w", err)
	})
}

// until waits until check returns no error.
func until(ctx context.Context, t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Errorf("%s: not within %v: %v", what, patience, last)
	}
}

func TestPodsWithInjectedSidecarsRequestWhatWasAdmitted(t *testing.T) {
	injectSidecars(t, cluster)
	for _, test := range []struct {
		kind      kind
		two, pods string
	}{
		{batchJob, `{spec: {parallelism: 2, completions: 2}}`, "batch.kubernetes.io/job-name=a"},
		{tfJob, `{spec: {tfReplicaSpecs: {Worker: {replicas: 2}}}}`, "training.kubeflow.org/job-name=a"},
	} {
		t.Run(test.kind.name, func(t *testing.T) {
			s := beginIn(t, cluster, sidecars, test.kind, annotated, test.two)
			want := corev1.ResourceList{"cpu": resource.MustParse("2500m"), "memory": resource.MustParse("128Mi")}
			unit := s.hasUnit("that requests sidecars too", func(u *v1alpha1.QueueUnit) bool { return equality.Semantic.DeepEqual(u.Spec.Resource, want) })
			set := unit.Spec.PodSets[0]
			one := corev1.ResourceList{"cpu": resource.MustParse("1250m"), "memory": resource.MustParse("64Mi")}
			limits := corev1.ResourceList{"memory": resource.MustParse("128Mi")}
			if !equality.Semantic.DeepEqual(set.Requests, one) || !equality.Semantic.DeepEqual(set.Limits, limits) {
				t.Errorf("a pod requests %v with limits %v, want %v and %v", set.Requests, set.Limits, one, limits)
			}
			s.admit()
			s.eventually("its pods request what was admitted", func() string {
				if got := s.requestedBy(test.pods); !equality.Semantic.DeepEqual(got, want) {
					return fmt.Sprintf("its pods request %v", got)
				}
				return ""
			})
		})
	}
}

// requestedBy returns what the pods with these labels request.
func (s *story) requestedBy(labels string) corev1.ResourceList {
	s.Helper()
	pods, err := s.core.CoreV1().Pods(s.ns).List(s.Context(), metav1.ListOptions{LabelSelector: labels})
	s.must(err)
	total := corev1.ResourceList{}
	for i := range pods.Items {
		s.must(requests.Add(total, rules().OfPod(&pods.Items[i])))
	}
	return total
}
