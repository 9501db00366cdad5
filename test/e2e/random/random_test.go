package random

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/e2e/random/oracle"
	"kube-queue.dev/kube-queue/test/e2e/random/plan"
	"kube-queue.dev/kube-queue/test/harness"
)

const defaultJobs, defaultAttacks = 40, 60

var (
	seed     = flag.Uint64("seed", 1, "what the steps are drawn from")
	jobCount = flag.Int("jobs", defaultJobs, "how many jobs there are")
	attacks  = flag.Int("attacks", defaultAttacks, "how many attacks there are; with 0, no namespace is managed")
	delay    = flag.Duration("delay", 5*time.Second, "how long a pod may be unknown to kube-queue-controller")
)

// namespaces of the jobs. Each has its own quota group.
var namespaces = []string{"random-a", "random-b", "random-c"}

// The largest job is a RayJob with a head, a submitter and four workers of 2 CPUs each. It fits into each group.
// Together, the groups may use more than the nodes above them.
const quotas = `{name: all, max: {cpu: 26, memory: 24Gi}, children: [
  {name: research, max: {cpu: 18, memory: 20Gi, kube-queue/max-jobs: 8}, children: [
    {name: vision, namespaces: [random-a], max: {cpu: 12, memory: 12Gi}},
    {name: speech, namespaces: [random-b], max: {cpu: 12}}]},
  {name: production, namespaces: [random-c], max: {cpu: 12, memory: 10Gi}}]}`

// tree is the same tree for the oracle.
var tree = []oracle.Node{
	{Path: "root", Namespaces: namespaces},
	{Path: "root/all", Namespaces: namespaces, Max: amounts(26, 24)},
	{Path: "root/all/research", Namespaces: namespaces[:2], Max: oracle.Amounts{"cpu": 18000, "memory": 20 << 30, oracle.MaxJobs: 8}},
	{Path: "root/all/research/vision", Namespaces: namespaces[:1], Max: amounts(12, 12)},
	{Path: "root/all/research/speech", Namespaces: namespaces[1:2], Max: oracle.Amounts{"cpu": 12000}},
	{Path: "root/all/production", Namespaces: namespaces[2:], Max: amounts(12, 10)},
}

func amounts(cpus, gibibytes int64) oracle.Amounts {
	return oracle.Amounts{"cpu": 1000 * cpus, "memory": gibibytes << 30}
}

// Random jobs are submitted, scaled, copied, suspended by hand, deleted and orphaned, and both programs are killed.
// Judging by what pods request, no unit is admitted without room, and no pod is uncharged for longer than watches are
// delayed: 5 s, because the programs run with the race detector and check themselves after each event. At the end, no
// quota is used.
//
// In one namespace, growth waits for quota. With an odd seed, pods outside of the queue are not counted.
//
// Meanwhile, users of managed namespaces attack. Whatever is accepted, everything that runs is charged.
func TestRandomJobsAreChargedWhatTheirPodsRequest(t *testing.T) {
	if testing.Short() && *jobCount == defaultJobs {
		*jobCount = 16
	}
	if testing.Short() && *attacks == defaultAttacks {
		*attacks = 30
	}
	r := begin(t)
	t.Logf("%d steps with %d jobs; to run the same steps again: %s", len(r.plan.Steps), *jobCount, again())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("failed in or after step %d of %d; to run the same steps again: %s", r.at, len(r.plan.Steps), again())
		}
	})
	defer r.judge() // even after a failed step
	for i, s := range r.plan.Steps {
		r.at = i
		r.step(s)
	}
	r.finish()
	r.deleteJobs()
	r.places[0].ExpectFree()
	r.expectEmptyQueues()
	r.expectNoDefects()
}

func again() string {
	return fmt.Sprintf("go test -count=1 -v -timeout 40m ./test/e2e/random -jobs=%d -attacks=%d -seed=%d -delay=%v", *jobCount, *attacks, *seed, *delay)
}

// begin starts the programs and the oracle.
func begin(t *testing.T) *run {
	t.Helper()
	r := &run{
		t: t, ending: map[int]bool{}, clearing: map[int]time.Time{}, clusterless: map[int]bool{}, ended: map[types.UID]bool{},
		done: map[plan.Op]int{}, refused: map[plan.Op]int{},
	}
	var drawnFrom []plan.Kind
	var extensions []string
	for _, k := range kinds() {
		drawnFrom, extensions = append(drawnFrom, k.Kind), append(extensions, k.extension)
	}
	r.plan = plan.New(*seed, *jobCount, len(namespaces), drawnFrom, *attacks)
	whole := suite.Env(t, namespaces[0])
	whole.QueuePods()
	// Steps change jobs after their release and resume them by hand, so pods may exist early or remain. A write is
	// repeated if its response was lost. Units of orphaned jobs hold quota until the pods are gone.
	whole.Allowed = []string{"early-pod", "early-return", "write-budget"}
	whole.Audit.Grace = new(time.Hour)
	r.places = []*harness.Env{whole}
	for _, name := range namespaces[1:] {
		r.places = append(r.places, suite.Part(t, name))
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	var err error
	r.record, err = oracle.Watch(ctx, suite.Config(), namespaces, jobOf)
	harness.Must(t, err)
	whole.TreeOf(quotas)
	if *attacks > 0 {
		r.admitAttackers()
	}
	var flags []string
	if *seed%2 == 0 { // otherwise, no pod may be unqueued: in managed namespaces, every new pod is queued or a part of a queued job
		flags = append(flags, "--count-unqueued-pods")
	}
	r.controller, r.extensions = suite.Both(t, strings.Join(slices.Compact(extensions), ","), flags...)
	whole.PatchQueue("root-all-production", `{"spec":{"growth":"Gate"}}`)
	return r
}

// judge reports what the oracle has found.
func (r *run) judge() {
	v := r.record.Judge(tree, r.down, *delay)
	for _, violation := range v.Violations {
		r.t.Errorf("%s, in step %s: %s", violation.At.UTC().Format("15:04:05.000"), r.during(violation.At), violation.What)
	}
	r.t.Logf("verified: %d admissions, of which pods beyond what was admitted matter for %d; %d statuses; %d moments. "+
		"The longest time until a pod was in a status: %v; %.1f pod-seconds were not charged", v.Admissions, v.Decided, v.Statuses, v.Moments, v.Lag.Round(time.Millisecond), v.Uncharged.Seconds())
	r.t.Logf("steps done: %v; refused: %v", r.done, r.refused)
	r.reportAttacks()
	if v.Admissions == 0 || v.Statuses == 0 {
		r.t.Error("too little was verified")
	}
}

// during describes the step at this time.
func (r *run) during(at time.Time) string {
	i, _ := slices.BinarySearchFunc(r.begun, at, time.Time.Compare)
	if i--; i < 0 {
		return "none"
	}
	return fmt.Sprintf("%d (%s)", i, r.plan.Steps[i])
}

// deleteJobs deletes all jobs, and waits until nothing is left.
func (r *run) deleteJobs() {
	r.t.Helper()
	for _, job := range r.plan.Jobs {
		if err := r.delete(drawn{job}, metav1.DeletePropagationBackground); !apierrors.IsNotFound(err) {
			harness.Must(r.t, err)
		}
	}
	harness.Eventually(r.t, patience, "no unit and no pod is left", func() (bool, string) {
		r.weed()
		r.deleteStrays()
		units, pods := r.record.Count()
		return units+pods == 0, fmt.Sprintf("%d units and %d pods", units, pods)
	})
}

// deleteStrays deletes the pods whose owner an attack has removed, because the garbage collector does not.
func (r *run) deleteStrays() {
	r.t.Helper()
	for _, place := range r.places {
		pods := place.Dynamic.Resource(harness.Pods).Namespace(place.Namespace)
		list, err := pods.List(r.t.Context(), metav1.ListOptions{})
		harness.Must(r.t, err)
		for _, p := range list.Items {
			if metav1.GetControllerOf(&p) != nil {
				continue
			}
			if err := pods.Delete(r.t.Context(), p.GetName(), metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
				harness.Must(r.t, err)
			}
		}
	}
}

// expectEmptyQueues waits until all counts of the Queues are 0.
func (r *run) expectEmptyQueues() {
	r.t.Helper()
	harness.Eventually(r.t, patience, "all queues are empty", func() (bool, string) {
		list, err := r.places[0].Queue.SchedulingV1alpha1().Queues(clustertest.Namespace).List(r.t.Context(), metav1.ListOptions{})
		harness.Must(r.t, err)
		for _, q := range list.Items {
			if s := q.Status; s.Pending+s.Reserved+s.Dequeued+s.Running != 0 {
				return false, fmt.Sprintf("%s: %+v", q.Name, s)
			}
		}
		return len(list.Items) > 0, "there is none"
	})
}

// expectNoDefects checks the metrics that count defects in the last controller process.
func (r *run) expectNoDefects() {
	r.t.Helper()
	lines := r.controller.Metrics(r.t, suite.MetricsToken(r.t, "prometheus"))
	for _, want := range []string{"kube_queue_invariant_violations_total 0", "kube_queue_safety_flush_rescues_total 0"} {
		if !slices.Contains(lines, want) {
			r.t.Errorf("the metrics do not contain %q:\n%s", want, strings.Join(lines, "\n"))
		}
	}
}
