package resourcequota

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/harness"
)

const defaultStorm = 60

var (
	stormSize = flag.Int("storm", defaultStorm, "how many jobs the storm has")
	stormSeed = flag.Uint64("storm-seed", 0, "what the storm is drawn from; 0: the time")
)

// places are the namespaces of the storm with their quotas. The quotas differ, so that jobs at some time wait for
// each kind of key.
var places = []struct{ name, quotas string }{
	{"storm-a", quota("all", `cpu: 8, memory: 14Gi, pods: 30`)},
	{"storm-b", quota("compute", `requests.cpu: 8, requests.memory: 14Gi`) + quota("objects", `pods: 20, count/pods: 40`)},
	{"storm-c", quota("limits", `requests.cpu: 9, limits.cpu: 10, limits.memory: 14Gi`)},
	{"storm-d", quota("cpu", `cpu: 12, limits.memory: 20Gi`) + quota("pods", `pods: 14`)},
}

// Jobs of four kinds run in four namespaces together with pods outside the queue, and the controller is killed twice.
// Each job ends, and no job waits for ever while there is room: see place. The audit checker verifies that the pods
// of each released job fit beside all existing pods.
func TestStormOfJobsTogetherWithUnqueuedPods(t *testing.T) {
	if testing.Short() && *stormSize == defaultStorm {
		*stormSize = 36
	}
	seed := *stormSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("to have the same jobs again: -storm=%d -storm-seed=%d", *stormSize, seed)
	whole := newEnv(t, "default")
	whole.Allowed = []string{"write-budget"} // a write is repeated if its response was lost
	// No tolerance for pods that the controller has not seen yet; see place.
	whole.Audit.PodLag = new(time.Duration)
	s := &storm{t: t, began: time.Now()}
	s.controller, _ = suite.BothWith(t, enabled, byResourceQuota)
	for i, p := range places {
		l := suite.Part(t, p.name)
		l.Apply(p.quotas)
		count := *stormSize / len(places)
		if i < *stormSize%len(places) {
			count++
		}
		s.places = append(s.places, &place{
			Env: l, t: t, jobs: drawJobs(rand.New(rand.NewPCG(seed, uint64(i))), count),
			chance: rand.New(rand.NewPCG(seed, uint64(100+i))), guests: map[string]*guest{},
		})
	}
	s.rage()
	s.report()
	s.judge(whole)
}

// storm is the state of the test.
type storm struct {
	t          *testing.T
	controller *harness.Program
	places     []*place
	began      time.Time
	// kills so far, and whether the controller runs.
	kills int
	down  bool
	// struck is closed after the first kill. It is nil until then is due.
	struck chan struct{}
}

// rage runs until all jobs have ended.
func (s *storm) rage() {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	ended, since := 0, time.Now()
	for {
		now := 0
		for _, p := range s.places {
			p.turn()
			now += p.count(func(j *drawn) bool { return j.ended })
		}
		if now == *stormSize {
			return
		}
		if now > ended {
			ended, since = now, time.Now()
		}
		if time.Since(since) > patience {
			s.t.Fatalf("no job has ended for %v, and %d of %d have:\n%s", patience, ended, *stormSize, s.state())
		}
		s.strike(ended)
		<-tick.C
	}
}

// strike kills the controller twice: while a released job waits for its pods, with an immediate restart, and before
// quota is freed, with a restart afterwards. The first kill comes while many jobs are still queued.
func (s *storm) strike(ended int) {
	switch {
	case s.down:
		if s.any(func(p *place, j *drawn) bool { return j.reported && !j.ended }) {
			return
		}
		s.down = false
		s.controller.Start()
	case s.kills == 0 && s.struck == nil && ended > 0:
		s.struck = make(chan struct{})
		s.killAtRelease()
	case s.kills == 0 && s.struck != nil:
		select {
		case <-s.struck:
			s.kills = 1
			s.controller.Start()
		default:
		}
	case s.kills == 1 && ended >= *stormSize/3 && s.any(func(_ *place, j *drawn) bool { return j.reported && !j.ended }):
		s.kills, s.down = 2, true
		s.controller.Kill()
	}
}

// killAtRelease kills the controller as soon as it releases a unit, and closes struck. Polling every 200 ms is too
// slow: the pods may exist by the next poll.
func (s *storm) killAtRelease() {
	units, err := s.places[0].Queue.SchedulingV1alpha1().QueueUnits("").Watch(s.t.Context(), metav1.ListOptions{})
	harness.Must(s.t, err)
	go func() {
		defer close(s.struck)
		defer units.Stop()
		held := map[types.UID]bool{}
		for event := range units.ResultChan() {
			unit, is := event.Object.(*schedulingv1alpha1.QueueUnit)
			if !is {
				s.t.Errorf("the watch of units ended: %v", event.Object)
				return
			}
			holds := unit.Status.Phase.HoldsQuota()
			if holds && !held[unit.UID] && event.Type == watch.Modified {
				s.controller.Kill()
				return
			}
			held[unit.UID] = holds
		}
	}()
}

func (s *storm) any(is func(*place, *drawn) bool) bool {
	return slices.ContainsFunc(s.places, func(p *place) bool { return p.count(func(j *drawn) bool { return is(p, j) }) > 0 })
}

// state describes each job that has not ended, and what its namespace waits for.
func (s *storm) state() string {
	var lines []string
	for _, p := range s.places {
		if stirs := p.stirs(); stirs != "" {
			lines = append(lines, fmt.Sprintf("%s is not still: %s", p.Namespace, stirs))
		}
		for _, j := range p.jobs {
			if unit := p.seen.units[j.name]; j.submitted && !j.ended && unit != nil {
				lines = append(lines, fmt.Sprintf("%s/%s %s: %s %s, instructed to end: %t, %d pods; %s", p.Namespace, j.name, j.kind,
					unit.Status.Phase, unit.Status.Reason, j.reported, len(p.seen.of(j.name)), unit.Status.Message))
			}
		}
	}
	return strings.Join(lines, "\n")
}

func (s *storm) report() {
	if s.kills != 2 {
		s.t.Errorf("the controller was killed %d times, want 2", s.kills)
	}
	s.t.Logf("%d jobs ended within %v", *stormSize, time.Since(s.began).Round(time.Second))
	for _, p := range s.places {
		s.t.Logf("%s: %d jobs; unmanaged pods: %d came, %d were refused; %d still moments", p.Namespace, len(p.jobs), p.came, p.refused, p.still)
		if p.came == 0 {
			s.t.Errorf("%s: no unmanaged pod came", p.Namespace)
		}
	}
}

// judge checks in the audit log that each job was admitted once.
func (s *storm) judge(whole *harness.Env) {
	admitted := map[string]int{}
	for _, life := range whole.Log(s.t.Context()).Lives() {
		admitted[life.Namespace] += len(life.Dequeued)
	}
	for _, p := range s.places {
		if admitted[p.Namespace] != len(p.jobs) {
			s.t.Errorf("%s: %d admissions, want one for each of %d jobs", p.Namespace, admitted[p.Namespace], len(p.jobs))
		}
	}
}
