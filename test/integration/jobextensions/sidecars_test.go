package jobextensions

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/requests"
	"kube-queue.dev/kube-queue/test/harness"
)

// sidecars is a namespace where each pod gets a sidecar.
const sidecars = "sidecars"

// injection has the namespace, and a policy that acts like an injecting webhook.
const injection = `
{apiVersion: v1, kind: Namespace, metadata: {name: ` + sidecars + `}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: ` + sidecars + `}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods], scope: Namespaced}]}
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: |
        [JSONPatch{op: "add", path: "/spec/containers/-", value: {
          "name": dyn("sidecar"), "image": dyn("sidecar"), "resources": dyn({"requests": {"cpu": "250m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}})}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: ` + sidecars + `}
spec: {policyName: ` + sidecars + `, matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ` + sidecars + `}}}}
`

// injectSidecars creates the namespace, and waits until its pods get a sidecar.
func injectSidecars(t *testing.T) {
	t.Helper()
	_, err := cluster.KubectlWith(t.Context(), injection, "apply", "-f", "-")
	harness.Must(t, err)
	t.Cleanup(func() { // the test can then run again; its own context is already done
		_, err := cluster.KubectlWith(context.Background(), injection, "delete", "--wait", "-f", "-")
		harness.Must(t, err)
	})
	const probe = `{apiVersion: v1, kind: Pod, metadata: {name: probe, namespace: ` + sidecars + `}, spec: {containers: [{name: main, image: main}]}}`
	harness.Eventually(t, patience, "pods get a sidecar", func() (bool, string) {
		out, err := cluster.KubectlWith(t.Context(), probe, "create", "--dry-run=server", "-o", "jsonpath={.spec.containers[*].name}", "-f", "-")
		return out == "main sidecar", fmt.Sprint(out, err)
	})
}

func TestPodsWithInjectedSidecarsRequestWhatWasAdmitted(t *testing.T) {
	injectSidecars(t)
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
