package pods

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/harness"
)

var scales = flag.Int("scales", 15, "how often the size of the growing job changes")

// TestAGrowingJobNeverExceedsItsQuota changes the parallelism of a Job at random while both programs are killed. It
// looks only at the pods: at no instant do the pods that have passed request more than the quota. In the end, all
// pods that fit pass.
func TestAGrowingJobNeverExceedsItsQuota(t *testing.T) {
	e := env{suite.Env(t, "grows"), t}
	e.QueuePods()
	controller, extensions := suite.Both(t, "job,pod")
	const quota, largest = 8, 20
	e.TreeOf(fmt.Sprintf(`{name: grows, namespaces: [grows], max: {cpu: "%d"}}`, quota))
	e.PatchQueue("root-grows", `{"spec":{"growth":"Gate"}}`)
	watch, err := e.Kube.CoreV1().Pods("grows").Watch(t.Context(), metav1.ListOptions{})
	harness.Must(t, err)
	defer watch.Stop()
	e.Apply(`apiVersion: batch/v1
kind: Job
metadata: {name: main, annotations: {scheduling.x-k8s.io/suspend: "true"}}
spec:
  suspend: true
  parallelism: 2
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: busybox, resources: {requests: {cpu: "1"}}}]
`)
	e.WaitForPhase("Job", "main", v1alpha1.PhaseRunning)
	random := rand.New(rand.NewPCG(1, 2))
	pods, most, waited := map[string]*corev1.Pod{}, 0, 0
	count := func() (passed, gated int) {
		for _, pod := range pods {
			switch {
			case waits(pod):
				gated++
			case pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed:
				passed++
			}
		}
		return passed, gated
	}
	// see follows the pods until reached returns true.
	see := func(what string, reached func(passed, gated int) bool) {
		t.Helper()
		deadline := time.After(2 * time.Minute)
		for {
			passed, gated := count()
			if most = max(most, passed); passed > quota {
				t.Fatalf("%d pods have passed, and the quota has room for %d", passed, quota)
			}
			if reached(passed, gated) {
				return
			}
			select {
			case <-deadline:
				t.Fatalf("%s: %d pods have passed, and %d wait", what, passed, gated)
			case event, open := <-watch.ResultChan():
				pod, is := event.Object.(*corev1.Pod)
				if !open || !is {
					t.Fatalf("the watch ended: %v", event)
				}
				if event.Type == "DELETED" {
					delete(pods, pod.Name)
				} else {
					pods[pod.Name] = pod
				}
			}
		}
	}
	for i := range *scales {
		size := 1 + random.IntN(largest)
		e.Patch(harness.Jobs, "main", fmt.Sprintf(`{"spec":{"parallelism":%d}}`, size))
		if kill := random.IntN(6); kill == 0 {
			controller.Kill()
			controller = suite.Program(t, harness.Controller).Start()
		} else if kill == 1 {
			extensions.Kill()
			extensions = suite.Program(t, harness.Extensions, "--enabled-extensions=job,pod").Start()
		}
		if random.IntN(2) == 0 || i == *scales-1 { // otherwise it changes again first
			see(fmt.Sprintf("size %d", size), func(passed, gated int) bool { return passed == min(size, quota) && gated == max(size-quota, 0) })
		}
		_, gated := count()
		waited = max(waited, gated)
	}
	if most < quota || waited == 0 {
		t.Errorf("at most %d pods had passed, and %d waited: nothing was at stake", most, waited)
	}
	e.Patch(harness.Jobs, "main", fmt.Sprintf(`{"spec":{"parallelism":%d}}`, largest))
	e.WaitForReason("Job", "main-growth", wellknown.ReasonQuotaExceeded)
	e.Delete(harness.Jobs, "main")
	e.ExpectFree()
}
