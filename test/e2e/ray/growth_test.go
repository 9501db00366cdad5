package ray

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
	"kube-queue.dev/kube-queue/test/harness"
)

// workers returns the workers of the cluster that have passed the gate, and how many still wait there.
func workers(l *harness.Env, cluster string) (passed []corev1.Pod, waiting int) {
	all := l.RayWorkers(cluster)
	passed = slices.DeleteFunc(slices.Clone(all), func(p corev1.Pod) bool { return framework.IsGated(&p) })
	return passed, len(all) - len(passed)
}

func expectWorkers(t *testing.T, l *harness.Env, cluster string, passed, waiting int) {
	t.Helper()
	harness.Eventually(t, time.Minute, fmt.Sprintf("%d workers have passed, and %d wait", passed, waiting), func() (bool, string) {
		p, w := workers(l, cluster)
		return len(p) == passed && w == waiting, fmt.Sprintf("%d and %d", len(p), w)
	})
}

// scale makes the autoscaler of a cluster change the number of workers and remove the named ones.
func scale(t *testing.T, l *harness.Env, cluster string, replicas int, without ...string) {
	t.Helper()
	names, err := json.Marshal(append([]string{}, without...))
	harness.Must(t, err)
	_, err = l.As("system:serviceaccount:"+l.Namespace+":"+cluster).Resource(harness.RayClusters).Namespace(l.Namespace).Patch(t.Context(), cluster,
		types.JSONPatchType, fmt.Appendf(nil, `[
		{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": %d},
		{"op": "add", "path": "/spec/workerGroupSpecs/0/scaleStrategy", "value": {"workersToDelete": %s}}]`, replicas, names), metav1.PatchOptions{})
	harness.Must(t, err)
}

// An autoscaler scales a cluster from 4 to 80 workers beside a head. The cluster uses all of a max of 9 CPUs, and no
// more.
func TestTheMaxLimitsAnAutoscaledCluster(t *testing.T) {
	l := suite.Env(t, "growth")
	l.QueuePods()
	_, extensions := suite.Both(t, "raycluster,pod")
	l.Manage()
	l.TreeOf(`{name: growth, namespaces: [growth], max: {cpu: "9"}}`)
	l.PatchQueue("root-growth", `{"spec":{"growth":"Gate"}}`)
	l.Apply(harness.RayCluster{Name: "scaled", Workers: 4, Most: 80, CPU: "1"}.String())
	l.WaitForPhase("RayCluster", "scaled", v1alpha1.PhaseRunning)
	expectWorkers(t, l, "scaled", 4, 0)
	scale(t, l, "scaled", 80)
	expectWorkers(t, l, "scaled", 8, 72)
	l.WaitForReason("RayCluster", "scaled-growth", wellknown.ReasonQuotaExceeded)
	harness.Never(t, 3*time.Second, "a ninth worker passes", func() (bool, string) {
		passed, _ := workers(l, "scaled")
		return len(passed) > 8, fmt.Sprint(len(passed))
	})

	// Another worker passes without a decision within 2 s, but only while job-extensions runs.
	before := l.Unit("RayCluster", "scaled-growth").ResourceVersion
	passed, _ := workers(l, "scaled")
	l.Delete(harness.Pods, passed[0].Name)
	var since time.Time // the worker is gone
	harness.Eventually(t, time.Minute, "another worker has passed", func() (bool, string) {
		gone := !slices.ContainsFunc(l.Pods("scaled"), func(p corev1.Pod) bool { return p.UID == passed[0].UID })
		if since.IsZero() && gone {
			since = time.Now()
		}
		now, _ := workers(l, "scaled")
		return len(now) == 8 && gone, fmt.Sprint(len(now))
	})
	if took := time.Since(since); took > 2*time.Second {
		t.Errorf("another worker passed after %v", took)
	}
	if after := l.Unit("RayCluster", "scaled-growth").ResourceVersion; after != before {
		t.Errorf("the unit for growth was written, version %s to %s", before, after)
	}
	extensions.Kill()
	passed, _ = workers(l, "scaled")
	l.Delete(harness.Pods, passed[0].Name)
	expectWorkers(t, l, "scaled", 7, 73)
	harness.Never(t, time.Second, "a worker passes while job-extensions is down", func() (bool, string) {
		now, _ := workers(l, "scaled")
		return len(now) > 7, fmt.Sprint(len(now))
	})
	suite.Program(t, harness.Extensions, "--enabled-extensions=raycluster,pod").Start()
	expectWorkers(t, l, "scaled", 8, 72)

	l.TreeOf(`{name: growth, namespaces: [growth], max: {cpu: "12"}}`)
	expectWorkers(t, l, "scaled", 11, 69)
	var surplus []string // the autoscaler names the workers to delete
	passed, _ = workers(l, "scaled")
	for _, pod := range l.Pods("scaled") {
		keeps := slices.ContainsFunc(passed[:6], func(p corev1.Pod) bool { return p.Name == pod.Name })
		if pod.Labels["ray.io/node-type"] == "worker" && !keeps {
			surplus = append(surplus, pod.Name)
		}
	}
	scale(t, l, "scaled", 6, surplus...)
	expectWorkers(t, l, "scaled", 6, 0)
	harness.Eventually(t, time.Minute, "the quota of 2 more workers is held", func() (bool, string) {
		unit := l.Unit("RayCluster", "scaled-growth")
		return unit != nil && unit.Status.Phase.HoldsQuota() && lifecycle.AdmittedPods(unit, &unit.Spec.PodSets[0]) == 2, fmt.Sprint(unit)
	})

	// An eviction restores the size that the owner wrote. KubeRay is at rest: it ignores a group for minutes if its
	// pods are deleted before it has seen their creation.
	l.PatchQueue("root-growth", `{"spec":{"stop":"Drain"}}`)
	expectWorkers(t, l, "scaled", 0, 0)
	l.WaitForReason("RayCluster", "scaled", wellknown.ReasonQueueStopped)
	l.PatchQueue("root-growth", `{"spec":{"stop":"None"}}`)
	expectWorkers(t, l, "scaled", 4, 0)
	if unit := l.Unit("RayCluster", "scaled-growth"); unit != nil {
		t.Errorf("there is still the unit %s", unit.Name)
	}
	l.Delete(harness.RayClusters, "scaled")
	l.ExpectFree()
}

// The cluster of a RayJob grows as a part of its job. With version v2 of the autoscaler, KubeRay changes its pods.
func TestTheMaxLimitsTheAutoscaledClusterOfARayJob(t *testing.T) {
	l := suite.Env(t, "job-growth")
	l.QueuePods()
	suite.Both(t, "rayjob,pod")
	l.Manage()
	l.TreeOf(`{name: job-growth, namespaces: [job-growth], max: {cpu: "6"}}`)
	l.PatchQueue("root-job-growth", `{"spec":{"growth":"Gate"}}`)
	job := strings.NewReplacer("rayVersion:", "enableInTreeAutoscaling: true\n    autoscalerOptions: {version: v2}\n    rayVersion:", "maxReplicas: 1", "maxReplicas: 20", ": 1s}", ": "+harness.UntilFinished.String()+"}",
		"submissionMode:", "shutdownAfterJobFinishes: true\n  submissionMode:").Replace(rayJob("grows"))
	l.Apply(job)
	l.WaitForPhase("RayJob", "grows", v1alpha1.PhaseRunning)
	cluster := l.RayClustersOf("grows")[0]
	expectWorkers(t, l, cluster, 1, 0)
	scale(t, l, cluster, 20)
	expectWorkers(t, l, cluster, 4, 16) // head and autoscaler leave room for these
	l.WaitForReason("RayJob", "grows-growth", wellknown.ReasonQuotaExceeded)
	l.Finish(harness.RayJobs, "grows")
	l.WaitForPhase("RayJob", "grows", v1alpha1.PhaseSucceeded)
	expectWorkers(t, l, cluster, 0, 0)
	l.ExpectFree()
}
