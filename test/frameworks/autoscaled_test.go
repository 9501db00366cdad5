package frameworks

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/harness"
)

// autoscaled is a RayCluster behind the fence. Ray's autoscaler adds and removes its workers.
var autoscaled = specimen{
	kind: "RayCluster", resource: harness.RayClusters, extension: "raycluster", name: "autoscaled",
	total: `{cpu: 4}`, fenced: true,
	test: (*story).taleOfAutoscaling,
}

// taleOfAutoscaling scales a cluster as its autoscaler does. The autoscaler runs in the head pod with the
// ServiceAccount that the operator creates for it.
func (s *story) taleOfAutoscaling() {
	s.Apply(harness.RayCluster{Name: "scaled", Workers: 1, Least: 1, Most: 3, CPU: "500m"}.String())
	s.WaitForPhase(s.kind, "scaled", v1alpha1.PhaseRunning)
	s.waitForWorkers(1)
	s.waitForUsed("1500m") // the head, the autoscaler in it, and a worker
	autoscaler := s.As("system:serviceaccount:" + s.Namespace + ":scaled").Resource(s.resource).Namespace(s.Namespace)
	scale := func(patch string) error {
		_, err := autoscaler.Patch(s.t.Context(), "scaled", types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
	const group = "/spec/workerGroupSpecs/0/"
	harness.Must(s.t, scale(`[{"op": "replace", "path": "`+group+`replicas", "value": 3}]`))
	s.waitForWorkers(3)
	s.waitForUsed("2500m")
	worker := s.RayWorkers("scaled")[0].Name
	harness.Must(s.t, scale(fmt.Sprintf(`[{"op": "replace", "path": "%sreplicas", "value": 2}, {"op": "add", "path": "%sscaleStrategy", "value": {"workersToDelete": ["%s"]}}]`, group, group, worker)))
	s.waitForWorkers(2)
	s.waitForUsed("2")
	harness.Must(s.t, scale(`[{"op": "replace", "path": "`+group+`scaleStrategy", "value": {"workersToDelete": []}}]`))
	for what, patch := range map[string]string{
		"more workers than it may have": `[{"op": "replace", "path": "` + group + `replicas", "value": 4}]`,
		"another limit":                 `[{"op": "replace", "path": "` + group + `maxReplicas", "value": 4}]`,
		"larger workers":                `[{"op": "replace", "path": "` + group + `template/spec/containers/0/resources/requests/cpu", "value": "2"}]`,
	} {
		if err := scale(patch); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			s.t.Errorf("%s: want it refused, not %v", what, err)
		}
	}
	s.taleOfItsEviction(scale, group)
	s.request("scaled", background)
	s.expectFree()
}

// taleOfItsEviction evicts a cluster of 2 workers that was admitted with one. Its autoscaler scales it up again while
// it stops.
func (s *story) taleOfItsEviction(scale func(patch string) error, group string) {
	activate := func(active bool) {
		s.Patch(s.resource, "scaled", fmt.Sprintf(`{"metadata": {"annotations": {%q: "%v"}}}`, wellknown.ActiveAnnotation, active))
	}
	activate(false)
	harness.Eventually(s.t, patience, "the cluster is suspended", func() (bool, string) {
		spec := s.Object(s.resource, "scaled").Object["spec"].(map[string]any)
		return spec["suspend"] == true, fmt.Sprint(spec)
	})
	harness.Must(s.t, scale(`[{"op": "replace", "path": "`+group+`replicas", "value": 3}]`))
	if event := s.WaitForEvent("scaled", string(wellknown.EventPodsLowered)); !strings.Contains(event.Message, "spec/workerGroupSpecs/0/replicas of pod set small from 3 to 1") {
		s.t.Errorf("the event says: %s", event.Message)
	}
	s.waitForUsed("0")
	activate(true)
	s.WaitForPhase(s.kind, "scaled", v1alpha1.PhaseRunning)
	s.waitForWorkers(1)
	s.waitForUsed("1500m")
}

func (s *story) waitForWorkers(n int) {
	s.t.Helper()
	harness.Eventually(s.t, time.Minute, fmt.Sprintf("the cluster has %d workers", n), func() (bool, string) {
		workers := s.RayWorkers("scaled")
		return len(workers) == n, fmt.Sprint(len(workers))
	})
}

// waitForUsed waits until the status of the tree shows that the story uses this many CPUs.
func (s *story) waitForUsed(cpu string) {
	s.t.Helper()
	want := resource.MustParse(cpu)
	harness.Eventually(s.t, patience, cpu+" CPUs are used", func() (bool, string) {
		tree, err := s.Queue.QuotaV1beta1().ElasticQuotaTrees(quotav1beta1.TreeNamespace).Get(s.t.Context(), "elasticquotatree", metav1.GetOptions{})
		harness.Must(s.t, err)
		for _, node := range tree.Status.Nodes {
			if used := node.Used[corev1.ResourceCPU]; node.Path == "root/"+s.title() {
				return used.Cmp(want) == 0, used.String()
			}
		}
		return false, "no such node"
	})
}
