package gangs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/gangs"
	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/standin/autoscaler"
	"kube-queue.dev/kube-queue/test/testmode"
)

// The quota equals the capacity of the nodes, so a job with quota has nodes.
func TestAHundredGangsRunOneAfterAnotherOnFixedNodes(t *testing.T) {
	testmode.OnlyInTestAll(t, "the gangs of TestAHundredGangsWaitForTheirNodes wait for quota too")
	gangs, pods := mixed()
	nodes := pods * 3 / 10 / nodeGPUs
	addNodes(t, nodes)
	l := suite.Env(t, "fixed")
	suite.Both(t, enabled)
	limit(l, nodes*nodeGPUs)
	run(t, l, gangs, nodes*nodeGPUs, "QuotaExceeded")
}

// The quota has room for more gangs than the nodes have. ProvisioningRequests add nodes, but never for more than 30 %
// of the pods.
func TestAHundredGangsWaitForTheirNodes(t *testing.T) {
	l := suite.Env(t, "provisioned")
	gangs, pods := mixed()
	scaler := autoscaler.ForTest(t, suite.Cluster)
	pool := &autoscaler.Pool{Limit: harness.Amounts(t, fmt.Sprintf(`{nvidia.com/gpu: "%d"}`, pods*3/10))}
	scaler.Answer(autoscaler.Provision().PodsOnNode(4).Within(pool))
	l.CheckNodes("check-capacity.autoscaling.x-k8s.io")
	suite.Both(t, enabled)
	limit(l, pods*6/10)
	run(t, l, with(gangs, func(g *gang) { g.apart = true }), pods*3/10, "QuotaExceeded", "NotProvisioned")
	harness.Eventually(t, time.Minute, "no request, no template and no added node is left", func() (bool, string) { return scaler.NothingLeft(t, l.Namespace) })
}

// unschedulable is the cause of pods for which the scheduler reports that there is no node.
const unschedulable = "PodScheduled=False"

// run runs all gangs, which are created at once. It fails the test if a gang is partly running at any instant, does
// not succeed in its first attempt, or holds quota afterwards. For each of the causes, some gang must wait.
func run(t *testing.T, l *harness.Env, all []gang, capacity int, causes ...string) {
	t.Helper()
	var checked []gangs.Gang
	for _, g := range all {
		checked = append(checked, g.checked(l.Namespace))
	}
	gangs.Follow(t, l.Kube, checked...)
	o := observe(t, l, all)
	start := time.Now()
	create(t, l, all)
	var most, running int
	harness.Eventually(t, patience, "all gangs have succeeded", func() (bool, string) {
		now := o.look()
		most, running = max(most, now.pods), max(running, now.gangs)
		return now.phases[v1alpha1.PhaseSucceeded] == len(all), fmt.Sprint(now)
	})
	t.Logf("%d gangs succeeded after %v, at most %d pods of %d gangs at the same time, with capacity for %d pods",
		len(all), time.Since(start).Round(time.Second), most, running, capacity)
	if most > capacity {
		t.Errorf("%d pods with a GPU were running at the same time, and there is capacity for %d", most, capacity)
	}
	for _, cause := range causes {
		if o.waited[cause] == nil {
			t.Errorf("no gang has waited because of %s", cause)
		}
		t.Logf("%d have waited because of %s", len(o.waited[cause]), cause)
	}
	l.ExpectFree()
}

// create creates all gangs at once. kubectl is too slow: the first gangs would end meanwhile.
func create(t *testing.T, l *harness.Env, all []gang) {
	t.Helper()
	created := make(chan error)
	for _, g := range all {
		go func() { created <- g.create(t.Context(), l) }()
	}
	var errs []error
	for range all {
		errs = append(errs, <-created)
	}
	harness.Must(t, errors.Join(errs...))
}

// observer watches the gangs. When all pods of a gang are running and do not end by themselves, it ends the gang.
type observer struct {
	t     *testing.T
	l     *harness.Env
	all   []gang
	units cache.Store
	pods  corelisters.PodNamespaceLister
	// ended are the gangs that the observer has ended.
	ended map[string]bool
	// waited has the names of what has waited, by cause.
	waited map[string]map[string]bool
}

func observe(t *testing.T, l *harness.Env, all []gang) *observer {
	t.Helper()
	core := informers.NewSharedInformerFactoryWithOptions(l.Kube, 0, informers.WithNamespace(l.Namespace))
	units := cache.NewSharedInformer(cache.NewListWatchFromClient(l.Queue.SchedulingV1alpha1().RESTClient(), "queueunits",
		l.Namespace, fields.Everything()), &v1alpha1.QueueUnit{}, 0)
	o := &observer{
		t: t, l: l, all: all, ended: map[string]bool{}, waited: map[string]map[string]bool{},
		units: units.GetStore(),
		pods:  core.Core().V1().Pods().Lister().Pods(l.Namespace),
	}
	ctx, cancel := context.WithCancel(t.Context())
	core.Start(ctx.Done())
	var running sync.WaitGroup
	running.Go(func() { units.RunWithContext(ctx) })
	t.Cleanup(func() {
		cancel()
		core.Shutdown()
		running.Wait()
	})
	core.WaitForCacheSync(ctx.Done())
	cache.WaitForCacheSync(ctx.Done(), units.HasSynced)
	return o
}

// seen is the state of all gangs.
type seen struct {
	phases map[v1alpha1.QueueUnitPhase]int
	// gangs and pods are the numbers of running ones.
	gangs, pods int
}

func (s seen) String() string {
	return fmt.Sprintf("%v; %d pods of %d gangs are running", s.phases, s.pods, s.gangs)
}

func (o *observer) look() seen {
	o.t.Helper()
	now := seen{phases: map[v1alpha1.QueueUnitPhase]int{}}
	for _, object := range o.units.List() {
		unit := object.(*v1alpha1.QueueUnit)
		now.phases[unit.Status.Phase]++
		cause := string(unit.Status.Reason)
		if strings.Contains(unit.Status.Message, "NotProvisioned") {
			cause = "NotProvisioned"
		}
		o.wait(cause, unit.Name)
		if unit.Status.Phase == v1alpha1.PhaseFailed || unit.Status.Attempts > 1 {
			o.t.Fatalf("%s was released %d times and is %s: %s", unit.Spec.ConsumerRef.Name, unit.Status.Attempts, unit.Status.Phase, unit.Status.Message)
		}
	}
	pods, err := o.pods.List(labels.Everything())
	harness.Must(o.t, err)
	running := map[string]int{}
	for _, pod := range pods {
		if c := condition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
			o.wait(unschedulable, pod.Name)
		}
		if pod.Status.Phase == corev1.PodRunning && pod.Labels["gang"] != "" {
			running[pod.Labels["gang"]]++
			now.pods++
		}
	}
	now.gangs = len(running)
	for _, g := range o.all {
		if resource, name := g.ends(); name != "" && !o.ended[g.name] && running[g.name] == g.pods {
			o.l.Patch(resource, name, harness.EndNow)
			o.ended[g.name] = true
		}
	}
	return now
}

func (o *observer) wait(cause, name string) {
	if o.waited[cause] == nil {
		o.waited[cause] = map[string]bool{}
	}
	o.waited[cause][name] = true
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}
