package pods

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/audit"
	"kube-queue.dev/kube-queue/test/audit/log"
	"kube-queue.dev/kube-queue/test/harness"
)

// marked returns a marked pod. If size is not 0, it belongs to a group of this size.
func marked(name, cpu, group string, size int) string {
	keys := ""
	if size > 0 {
		keys = fmt.Sprintf(", kube-queue/pod-group-size: %q}\n  labels: {kube-queue/pod-group: %s", fmt.Sprint(size), group)
	}
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata:
  name: %s
  annotations: {scheduling.x-k8s.io/suspend: "true"%s}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: busybox, resources: {requests: {cpu: %q}}}]
`, name, keys, cpu)
}

type env struct {
	*harness.Env
	t *testing.T
}

func (e env) pod(name string) *corev1.Pod {
	e.t.Helper()
	pod, err := e.Kube.CoreV1().Pods(e.Namespace).Get(e.t.Context(), name, metav1.GetOptions{})
	harness.Must(e.t, err)
	return pod
}

func waits(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.SchedulingGates, func(gate corev1.PodSchedulingGate) bool { return gate.Name == wellknown.PodGate })
}

// runs waits until the pods run.
func (e env) runs(names ...string) {
	e.t.Helper()
	harness.Eventually(e.t, time.Minute, strings.Join(names, ", ")+" run", func() (bool, string) {
		for _, name := range names {
			if pod := e.pod(name); pod.Status.Phase != corev1.PodRunning {
				return false, fmt.Sprintf("%s is %s, with gates %v", name, pod.Status.Phase, pod.Spec.SchedulingGates)
			}
		}
		return true, ""
	})
}

// create creates pods, each as soon as the ResourceQuota of its namespace has room.
func (e env) create(ctx context.Context, manifests []string) {
	for _, manifest := range manifests {
		pod := &corev1.Pod{}
		if err := yaml.Unmarshal([]byte(manifest), pod); err != nil {
			e.t.Error(err)
			return
		}
		err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			_, err := e.Kube.CoreV1().Pods(e.Namespace).Create(ctx, pod, metav1.CreateOptions{})
			if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota") || apierrors.IsConflict(err) {
				return false, nil
			}
			return err == nil, err
		})
		if err != nil {
			if ctx.Err() == nil {
				e.t.Errorf("creating %s: %v", pod.Name, err)
			}
			return
		}
	}
}

func (e env) gone(names ...string) {
	e.t.Helper()
	harness.Eventually(e.t, time.Minute, strings.Join(names, ", ")+" are gone", func() (bool, string) {
		list, err := e.Kube.CoreV1().Pods(e.Namespace).List(e.t.Context(), metav1.ListOptions{})
		harness.Must(e.t, err)
		for i := range list.Items {
			for _, name := range names {
				if list.Items[i].Name == name {
					return false, name
				}
			}
		}
		return true, ""
	})
}

func TestAPodWaitsAtTheGateUntilItsQuotaHasRoom(t *testing.T) {
	e := env{suite.Env(t, "plain"), t}
	e.QueuePods()
	controller, extensions := suite.Both(t, "pod")
	e.TreeOf(`{name: plain, namespaces: [plain], max: {cpu: "4"}}`)
	e.Apply(marked("first", "3", "", 0))
	e.runs("first")
	e.WaitForPhase("Pod", "first", v1alpha1.PhaseRunning)
	e.Apply(marked("second", "2", "", 0))
	e.WaitForReason("Pod", "second", wellknown.ReasonQuotaExceeded)
	e.WaitForEvent("second", "Queued")
	if !waits(e.pod("second")) {
		t.Error("the second pod does not wait at the gate")
	}
	// The programs keep nothing in memory.
	controller.Kill()
	extensions.Kill()
	suite.Both(t, "pod")
	if !waits(e.pod("second")) {
		t.Error("the second pod has passed")
	}
	e.Delete(harness.Pods, "first")
	e.runs("second")
	e.WaitForEvent("second", "Released")
	// A pod that is deleted while it waits frees its place.
	e.Apply(marked("third", "4", "", 0))
	e.WaitForReason("Pod", "third", wellknown.ReasonQuotaExceeded)
	e.Delete(harness.Pods, "third")
	e.Apply(marked("fourth", "2", "", 0))
	e.runs("fourth")
	e.Delete(harness.Pods, "second")
	e.Delete(harness.Pods, "fourth")
	e.ExpectFree()
}

func TestAGroupIsOneJob(t *testing.T) {
	e := env{suite.Env(t, "groups"), t}
	e.QueuePods()
	suite.Both(t, "pod")
	e.TreeOf(`{name: groups, namespaces: [groups], max: {cpu: "4"}}`)
	e.Apply(marked("one", "2", "", 0))
	e.runs("one")
	e.Apply(marked("a", "1", "trio", 3))
	e.Apply(marked("b", "1", "trio", 3))
	unit := e.WaitForReason("PodGroup", "trio", wellknown.ReasonInvalidRequest, "the group has 2 of its 3 pods")
	if len(unit.OwnerReferences) > 0 {
		t.Errorf("the unit of a group has the owners %v", unit.OwnerReferences)
	}
	e.Apply(marked("c", "1", "trio", 3))
	e.WaitForReason("PodGroup", "trio", wellknown.ReasonQuotaExceeded)
	e.Delete(harness.Pods, "one")
	e.runs("a", "b", "c")
	e.WaitForPhase("PodGroup", "trio", v1alpha1.PhaseRunning)

	// A pod beyond the size of its group waits. When another one is gone, it takes its place without a decision.
	e.Apply(marked("d", "1", "trio", 3))
	harness.Never(t, 3*time.Second, "a fourth pod passes", func() (bool, string) { return !waits(e.pod("d")), "" })
	e.Delete(harness.Pods, "b")
	e.runs("d")
	if unit := e.Unit("PodGroup", "trio"); unit.Status.Attempts != 1 {
		t.Errorf("the group was admitted %d times", unit.Status.Attempts)
	}

	// An eviction deletes the pods. Those that their creator makes instead wait. They have other names, because kwok
	// deletes pods by name, and on a busy machine more than once.
	e.PatchQueue("root-groups", `{"spec":{"stop":"Drain"}}`)
	e.gone("a", "c", "d")
	e.Apply(marked("e", "1", "trio", 3))
	e.Apply(marked("f", "1", "trio", 3))
	e.Apply(marked("g", "1", "trio", 3))
	e.WaitForReason("PodGroup", "trio", wellknown.ReasonQueueStopped)
	e.PatchQueue("root-groups", `{"spec":{"stop":"None"}}`)
	e.runs("e", "f", "g")
	e.Delete(harness.Pods, "e")
	e.Delete(harness.Pods, "f")
	e.Delete(harness.Pods, "g")
	e.ExpectFree()
}

// Opening the gate of a pod is a write. Pods without a mark cost kube-queue nothing.
func TestEachQueuedPodCostsAWriteAndOthersNone(t *testing.T) {
	e := env{suite.Env(t, "writes"), t}
	e.QueuePods()
	suite.Both(t, "pod")
	e.TreeOf(`{name: writes, namespaces: [writes], max: {cpu: "4"}}`)
	e.Apply(strings.Replace(marked("plain", "1", "", 0), "scheduling.x-k8s.io/suspend", "example.com/a", 1))
	e.Apply(marked("one", "1", "", 0))
	e.Apply(marked("a", "1", "pair", 2))
	e.Apply(marked("b", "1", "pair", 2))
	e.runs("plain", "one", "a", "b")
	e.WaitForPhase("Pod", "one", v1alpha1.PhaseRunning)
	e.WaitForPhase("PodGroup", "pair", v1alpha1.PhaseRunning)
	for _, name := range []string{"plain", "one", "a", "b"} {
		e.Delete(harness.Pods, name)
	}
	e.ExpectFree()
	writes := map[string]int{}
	harness.Must(t, suite.CompleteAuditLog(t.Context()))
	harness.Must(t, log.Open(suite.AuditLog).Read(func(_ int, line []byte) error {
		entry, err := log.Parse(line)
		if err != nil || !entry.Write() || !log.Success(entry.Code()) || entry.ObjectRef.Namespace != "writes" || entry.By() != audit.Controller && entry.By() != audit.Extensions {
			return err
		}
		if ref := entry.ObjectRef; ref.Resource == "pods" || strings.HasPrefix(ref.Name, "plain") {
			writes[ref.Name]++
		}
		return nil
	}))
	if want := map[string]int{"one": 1, "a": 1, "b": 1}; !maps.Equal(writes, want) {
		t.Errorf("kube-queue wrote %v, want %v", writes, want)
	}
}

var (
	singlePods = flag.Int("single", 60, "how many pods without a group TestManyPodsAndGroupsNeverExceedTheirQuota creates")
	podGroups  = flag.Int("groups", 10, "how many groups of pods it creates")
)

// TestManyPodsAndGroupsNeverExceedTheirQuota looks only at the pods: at no instant do the pods that have passed, with
// those of their groups that still wait, request more than their quota, and no pod of a group passes before all its pods
// exist. A ResourceQuota counts waiting pods, so their creators must retry.
func TestManyPodsAndGroupsNeverExceedTheirQuota(t *testing.T) {
	t.Run("tree", func(t *testing.T) { manyPods(t, false) })
	t.Run("ResourceQuotas", func(t *testing.T) { manyPods(t, true) })
}

func manyPods(t *testing.T, resourceQuotas bool) {
	const quota, quotas, size = 12, 3, 8
	all := *singlePods + *podGroups*size
	envs := make([]env, quotas)
	tree := make([]string, quotas)
	for i := range envs {
		name := fmt.Sprintf("many-%t-%d", resourceQuotas, i)
		if i == 0 {
			envs[i] = env{suite.Env(t, name), t}
		} else {
			envs[i] = env{suite.Part(t, name), t}
		}
		tree[i] = fmt.Sprintf(`{name: %s, namespaces: [%s], max: {cpu: "%d"}}`, name, name, quota)
		if resourceQuotas {
			envs[i].Apply(fmt.Sprintf("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: team}\nspec: {hard: {requests.cpu: %d}}\n", quota))
		}
	}
	e := envs[0]
	e.QueuePods()
	var backend []string
	if resourceQuotas {
		e.Audit.ResourceQuota = true
		backend = []string{"QueueGroupPlugin=resourceQuota"}
	}
	controller, extensions := suite.BothWith(t, "pod", backend)
	if !resourceQuotas {
		e.TreeOf(tree...)
	}
	watch, err := e.Kube.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{LabelSelector: wellknown.GatedLabel + "=true"})
	harness.Must(t, err)
	defer watch.Stop()
	manifests := make([][]string, quotas)
	for i := range *singlePods {
		manifests[i%quotas] = append(manifests[i%quotas], marked(fmt.Sprintf("s-%d", i), "1", "", 0))
	}
	for g := range *podGroups {
		for i := range size {
			manifests[g%quotas] = append(manifests[g%quotas], marked(fmt.Sprintf("g-%d-%d", g, i), "1", fmt.Sprintf("g-%d", g), size))
		}
	}
	var creators sync.WaitGroup
	defer creators.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for i := range envs {
		creators.Go(func() { envs[i].create(ctx, manifests[i]) })
	}
	pods := map[string]*corev1.Pod{}
	passed, ended, most := map[string]bool{}, 0, 0
	created, begun := map[string]int{}, map[string]bool{} // by group
	deadline := time.After(5*time.Minute + time.Duration(all)*time.Second)
	for ended < all {
		select {
		case <-deadline:
			t.Fatalf("%d pods have ended, %d have passed", ended, len(passed))
		case event, open := <-watch.ResultChan():
			pod, is := event.Object.(*corev1.Pod)
			if !open || !is {
				t.Fatalf("the watch ended: %v", event)
			}
			if !strings.HasPrefix(pod.Namespace, "many-") { // of an earlier test
				continue
			}
			if event.Type == "DELETED" {
				delete(pods, pod.Name)
				ended++
			} else {
				pods[pod.Name] = pod
			}
			if group := pod.Labels[wellknown.PodGroupLabel]; group != "" {
				if event.Type == "ADDED" {
					created[group]++
				}
				if !waits(pod) && created[group] < size {
					t.Fatalf("pod %s has passed, and its group has %d of %d pods", pod.Name, created[group], size)
				}
				begun[group] = begun[group] || !waits(pod)
			}
			now := 0
			for _, p := range pods {
				if p.Namespace == pod.Namespace && (!waits(p) || begun[p.Labels[wellknown.PodGroupLabel]]) {
					now++
				}
			}
			if most = max(most, now); most > quota {
				t.Fatalf("%d pods have passed at once, or wait for the rest of their group to pass, and the quota has room for %d", most, quota)
			}
			if event.Type != "DELETED" && !waits(pod) && !passed[pod.Name] {
				passed[pod.Name] = true
				switch len(passed) {
				case all / 4:
					controller.Kill()
					controller = suite.Program(t, harness.Controller)
					controller.Env = backend
					controller.Start()
				case all / 2:
					extensions.Kill()
					suite.Program(t, harness.Extensions, "--enabled-extensions=pod").Start()
				}
			}
			if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil && event.Type != "DELETED" {
				harness.Must(t, e.Kube.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}))
			}
		}
	}
	t.Logf("at most %d pods had passed at once", most)
	if most < quota/2 {
		t.Errorf("at most %d pods had passed at once: nothing was at stake", most)
	}
	for _, e := range envs {
		e.ExpectNoneHolds()
	}
}
