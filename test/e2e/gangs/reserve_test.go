package gangs

import (
	"fmt"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/gangs"
	"kube-queue.dev/kube-queue/test/harness"
)

// A gang that needs all GPUs competes with an endless supply of jobs of one GPU. They pass it until it has waited for
// reserveAfter. From then on, only jobs that end before it starts may pass, and it starts at the latest when the
// others have reached their limit.
func TestALargeGangStartsBesideAnEndlessStreamOfSmallJobs(t *testing.T) {
	const gpus, reserveAfter, maxRun = 64, 10 * time.Second, 20 * time.Second
	addNodes(t, gpus/nodeGPUs)
	l := suite.Env(t, "reserved")
	suite.Both(t, enabled)
	limit(l, gpus)
	l.PatchQueue("root-reserved", fmt.Sprintf(`{"spec":{"reserveAfter":%q}}`, reserveAfter))
	large := gang{kind: "PyTorchJob", name: "large", pods: gpus}
	gangs.Follow(t, l.Kube, large.checked(l.Namespace))
	o := observe(t, l, nil)

	created, waiting := 0, func() (n int) {
		for _, u := range o.units.List() {
			if u := u.(*v1alpha1.QueueUnit); u.Name != large.name && u.Status.Phase == v1alpha1.PhaseEnqueued {
				n++
			}
		}
		return n
	}
	stream := func() { // as many jobs as have started since
		for range min(8, 16-waiting()) {
			created++
			small := gang{kind: "Job", name: fmt.Sprintf("small-%d", created), pods: 1, runs: 8 * time.Second, limit: maxRun}
			harness.Must(t, small.create(t.Context(), l))
		}
	}
	harness.Eventually(t, time.Minute, "the small jobs use all GPUs", func() (bool, string) {
		stream()
		return created > gpus && waiting() > 0, fmt.Sprintf("%d of %d wait", waiting(), created)
	})
	harness.Must(t, large.create(t.Context(), l))
	l.WaitForReason(large.kind, large.name, wellknown.ReasonQuotaExceeded)
	var gang *v1alpha1.QueueUnit
	harness.Eventually(t, patience, "the gang is admitted", func() (bool, string) {
		stream()
		gang = l.Unit(large.kind, large.name)
		return gang.Status.DequeueTime != nil, fmt.Sprintf("%d jobs were created; the gang waits: %s", created, gang.Status.Message)
	})
	submitted, admitted := gang.CreationTimestamp, gang.Status.DequeueTime
	passed, late := 0, 0
	for _, u := range o.units.List() {
		u := u.(*v1alpha1.QueueUnit)
		at := u.Status.DequeueTime
		if at == nil || !at.Before(admitted) || u.UID == gang.UID {
			continue
		}
		if submitted.Before(&u.CreationTimestamp) {
			passed++
		}
		if at.Sub(submitted.Time) > reserveAfter+maxRun+time.Second { // creation times are in whole seconds
			late++
		}
	}
	t.Logf("the gang waited for %v, and %d of %d jobs passed it", admitted.Sub(submitted.Time).Round(time.Second), passed, created)
	if late > 0 || passed == 0 {
		t.Errorf("%d jobs passed the gang, %d of them more than %v after its submission", passed, late, reserveAfter+maxRun)
	}
	l.WaitForPhase(large.kind, large.name, v1alpha1.PhaseRunning)
	l.Delete(harness.PyTorchJobs, large.name)
	harness.Eventually(t, patience, "all small jobs have ended", func() (bool, string) { n := waiting(); return n == 0, fmt.Sprint(n) })
	l.ExpectFree()
}
