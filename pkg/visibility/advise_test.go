package visibility

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	visibilityv1alpha1 "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/forecast"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/pkg/simulator"
)

// halfOfLimit predicts that jobs run for half of their limit.
func halfOfLimit(_ string, d forecast.Declared, ran time.Duration) (time.Duration, bool) {
	return d.Limit/2 - ran, d.Limit > 0
}

// try tries a new unit in a namespace.
func (c *cluster) try(namespace string, requests resources.Vector, change func(*scheduler.Unit)) *Trial {
	c.t.Helper()
	m := c.model()
	m.Read = func(unit *v1alpha1.QueueUnit) (scheduler.Unit, error) {
		u := scheduler.Unit{Key: unit.Namespace + "/" + unit.Name, Facts: scheduler.Facts{UID: string(unit.UID), Version: 1, Submitted: unit.CreationTimestamp.UnixMicro(),
			Demand: quota.Demand{Requests: requests, Preemptible: true}}}
		change(&u)
		return u, nil
	}
	t, err := m.Try(namespace, &v1alpha1.QueueUnitSpec{}, halfOfLimit)
	if err != nil {
		c.t.Fatalf("try: %v", err)
	}
	return t
}

func (c *cluster) whyNew(t *Trial, access Access) *visibilityv1alpha1.QueueUnitReviewStatus {
	c.t.Helper()
	answer, err := t.Why(access)
	if err != nil {
		c.t.Fatalf("why: %v", err)
	}
	return answer
}

// submitNow submits a unit. If it is admitted immediately with fewer than all its pods, submitNow returns their
// number.
func (c *cluster) submitNow(key string, requests resources.Vector, change func(*scheduler.Unit)) (pods int32) {
	u := &scheduler.Unit{Key: key, Facts: scheduler.Facts{UID: key, Submitted: c.now.UnixMicro(), Demand: quota.Demand{Requests: requests, Preemptible: true}}}
	change(u)
	c.units[key] = u
	c.apply(u)
	for {
		plan, _ := c.core.Next(c.now)
		if len(plan) == 0 {
			return pods
		}
		for _, w := range plan {
			if c.land(w); w.Key == key && w.Kind == scheduler.Dequeue {
				pods = w.Grant.Count
			}
		}
	}
}

// essence is what an answer says about its unit alone. Submitting the unit can change the reasons of units ahead, and
// which units quota is kept for.
func essence(a *visibilityv1alpha1.QueueUnitReviewStatus) string {
	ahead := make([]string, len(a.Ahead))
	for i, u := range a.Ahead {
		ahead[i] = u.Name
	}
	if a.Reason == wellknown.ReasonQuotaExceeded || a.Reason == wellknown.ReasonBorrowingPaused {
		return fmt.Sprint(a.Phase, a.Queue, a.Quota, a.Policy, a.Priority, a.Requests, a.Position, a.Waiting, ahead)
	}
	return fmt.Sprint(a.Phase, a.Queue, a.Quota, a.Policy, a.Priority, a.Requests, a.Reason, a.Message, a.Position, a.Waiting, ahead, a.Lacks, messages(a))
}

// A new unit gets the same answers as after its submission.
func TestPropertyAdviceIsWhatFollows(t *testing.T) {
	admitted, waited, never := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		c := newCluster(rt, trees.Draw(rt, "tree"), tree.Options{PauseBorrowing: rapid.Bool().Draw(rt, "pause")})
		for _, q := range c.core.QueueNames() {
			change := scheduler.QueueChanged{Queue: q, Policy: rapid.SampledFrom([]*queue.Policy{queue.Priority, queue.Block}).Draw(rt, "policy")}
			if rapid.IntRange(0, 9).Draw(rt, "stop") == 0 {
				change.Stop = scheduler.Hold
			}
			c.core.Apply(c.now, change)
		}
		drawn := func(label string) (string, resources.Vector, func(*scheduler.Unit)) {
			cpu, gpu, minutes := rapid.IntRange(0, 8).Draw(rt, label+" cpu")*1000, rapid.IntRange(0, 5).Draw(rt, label+" gpu"), rapid.IntRange(120, 500).Draw(rt, label+" minutes")
			priority, preemptible, elastic := rapid.IntRange(0, 2).Draw(rt, label+" priority"), rapid.IntRange(0, 5).Draw(rt, label+" preemptible") > 0, rapid.IntRange(0, 2).Draw(rt, label+" elastic") == 0
			return rapid.SampledFrom(namespaces).Draw(rt, label+" namespace"), c.request("cpu", cpu, "nvidia.com/gpu", gpu), func(u *scheduler.Unit) {
				u.Priority, u.Demand.Preemptible, u.MaxSeconds = int32(priority), preemptible, int32(minutes*60*2)
				if elastic && cpu > 0 {
					u.Elastic = &scheduler.Elastic{PodSet: "main", Min: 2, Count: 4, Pod: resources.Vector{{ID: c.names.ID("cpu"), Value: int64(cpu) / 4}}}
				}
			}
		}
		for i := range rapid.IntRange(2, 25).Draw(rt, "units") {
			namespace, requests, change := drawn(fmt.Sprint("unit ", i))
			c.submit(fmt.Sprintf("%s/u%d", namespace, i), requests, change)
		}
		namespace, requests, change := drawn("new")
		trial := c.try(namespace, requests, change)
		advice := c.whyNew(trial, everything())
		pods := c.submitNow(namespace+"/new", requests, change)
		real := c.why(namespace+"/new", everything())
		start, known := c.model().Starts(halfOfLimit, map[string]int{trial.Queue: furthest})[namespace+"/new"]
		wait := start.Sub(c.now)
		switch {
		case real.Phase == "Dequeued":
			admitted++
			if trial.Start.After != 0 || trial.Start.Pods != pods {
				rt.Fatalf("it is admitted with %d pods, and is predicted to start in %+v", pods, trial.Start)
			}
		case known != (trial.Start.After != simulator.NotKnown):
			rt.Fatalf("it starts in %v (known: %t), and was predicted to start in %v", wait, known, trial.Start.After)
		case known:
			waited++
			if (wait - trial.Start.After).Abs() > afterBackoff {
				rt.Fatalf("it starts in %v, and was predicted to start in %v", wait, trial.Start.After)
			}
		case real.Reason.NeedsAction():
			never++
		}
		if got, want := essence(advice), essence(real); got != want {
			rt.Fatalf("advice:\n%s\nlater:\n%s", got, want)
		}
	})
	if min(admitted, waited, never) == 0 {
		t.Errorf("%d were admitted, %d waited, %d never start", admitted, waited, never)
	}
}

func TestANewUnitThatIsKeptOutShowsWhy(t *testing.T) {
	c := newCluster(t, teams(), tree.Options{})
	c.core.Apply(c.now, scheduler.QueueChanged{Queue: "root-b", Checks: scheduler.ChecksOf([]string{"nodes"})})
	c.core.Apply(c.now, scheduler.KindsChanged{Off: map[scheduler.JobKind]*quota.Refusal{1: {Reason: wellknown.ReasonKindNotQueued, Sentence: "off"}}})
	for _, of := range []struct {
		namespace string
		cpu       int
		kind      scheduler.JobKind
		held      *quota.Refusal
		want      wellknown.Reason
	}{
		{namespace: "a", cpu: 9000, want: wellknown.ReasonExceedsMaxQuota},
		{namespace: "b", cpu: 1000, want: wellknown.ReasonAdmissionCheckMissing},
		{namespace: "other", cpu: 1000, want: wellknown.ReasonNoQuota},
		{namespace: "a", cpu: 1000, kind: 1, want: wellknown.ReasonKindNotQueued},
		{namespace: "a", cpu: 1000, held: &quota.Refusal{Reason: wellknown.ReasonInvalidRequest, Sentence: "invalid"}, want: wellknown.ReasonInvalidRequest},
	} {
		trial := c.try(of.namespace, c.request("cpu", of.cpu), func(u *scheduler.Unit) { u.Kind, u.Held = of.kind, of.held })
		if answer := c.whyNew(trial, everything()); answer.Reason != of.want || answer.Message == "" || answer.Phase != "Enqueued" || trial.Start.After != simulator.NotKnown {
			t.Errorf("%+v: %+v, starts in %v", of, answer, trial.Start.After)
		}
	}
	if _, err := c.model().Try("a", &v1alpha1.QueueUnitSpec{}, halfOfLimit); err == nil || !strings.Contains(err.Error(), "backend") {
		t.Errorf("units that cannot be read: %v", err)
	}
}

func TestWithoutAnEstimateForWantOfEndedJobsTheAnswerSaysSo(t *testing.T) {
	for _, c := range []struct {
		holder  string
		seconds int32
		want    bool
	}{{"a/one", 0, true}, {"a/one", 600, false}, {"c/one", 0, false}} {
		cl := newCluster(t, lending(), tree.Options{})
		limited := func(u *scheduler.Unit) { u.MaxSeconds = 600 }
		cl.submit(c.holder, cl.request("cpu", 6000), func(u *scheduler.Unit) { u.MaxSeconds = c.seconds })
		answer := cl.whyNew(cl.try("a", cl.request("cpu", 4000), limited), everything())
		if got := strings.HasSuffix(answer.Message, "; no estimate yet: fewer than 5 jobs of this queue without a declared run time have ended"); got != c.want || answer.Phase != "Enqueued" {
			t.Errorf("%+v: it waits for %s: %s", c, answer.Reason, answer.Message)
		}
	}
}

func TestANewUnitOfManyPodsStartsEarlierWithFewer(t *testing.T) {
	c := newCluster(t, teams(), tree.Options{})
	c.submit("a/one", c.request("cpu", 4000), maxTime(2*time.Hour))
	c.submit("a/two", c.request("cpu", 4000), maxTime(6*time.Hour))
	trial := c.try("a", c.request("cpu", 8000), func(u *scheduler.Unit) {
		u.Elastic = &scheduler.Elastic{PodSet: "main", Min: 3, Count: 8, Pod: resources.Vector{{ID: c.names.ID("cpu"), Value: 1000}}}
	})
	at := func(d time.Duration) int { return int(d.Round(time.Minute).Minutes()) }
	if trial.Start.Pods != 4 || at(trial.Start.After) != 60 || at(trial.AllPods.Start.After) != 180 {
		t.Errorf("it starts in %+v, and with all pods in %+v", trial.Start, trial.AllPods.Start)
	}
	answer := c.whyNew(trial, only("a"))
	if answer.StartPods != 4 || answer.Reason != wellknown.ReasonQuotaExceeded || answer.WithAllPods.Reason != wellknown.ReasonQuotaExceeded || answer.WithAllPods.Message == answer.Message {
		t.Errorf("%+v, %+v", answer, answer.WithAllPods)
	}
}

// Only the time of Try is limited, so the answer must not loop over the units again.
func TestWhatAnAnswerNeedsOfAllUnitsIsComputedBefore(t *testing.T) {
	c := newCluster(t, teams(), tree.Options{})
	c.submit("a/one", c.request("cpu", 8000), func(u *scheduler.Unit) { u.MaxSeconds = 3600 })
	c.submit("a/two", c.request("cpu", 8000), func(*scheduler.Unit) {})
	for _, cpu := range []int{8000, 9000} {
		trial := c.try("a", c.request("cpu", cpu), func(*scheduler.Unit) {})
		want := c.whyNew(c.try("a", c.request("cpu", cpu), func(*scheduler.Unit) {}), everything())
		for i := range trial.model.view.Units {
			if u := &trial.model.view.Units[i]; u.Key != "a/"+newName {
				u.Queue = -1
			}
		}
		if got := c.whyNew(trial, everything()); got.Position != want.Position || got.Waiting != want.Waiting || got.Waiting < 1 {
			t.Errorf("%d milli-CPU: %+v, want %+v", cpu, got, want)
		}
	}
}

// Answers name no units of others, and questions leave nothing behind.
func TestAdviceNamesNobodyElseAndChangesNothing(t *testing.T) {
	c := newCluster(t, teams(), tree.Options{})
	c.submit("b/secret", c.request("cpu", 8000), func(u *scheduler.Unit) { u.MaxSeconds = 3600 })
	before := c.why("b/secret", everything())
	m := c.model()
	m.Read = func(unit *v1alpha1.QueueUnit) (scheduler.Unit, error) {
		return scheduler.Unit{Key: unit.Namespace + "/" + unit.Name, Facts: scheduler.Facts{UID: "new", Version: 1, Demand: quota.Demand{Requests: c.request("cpu", 4000), Preemptible: true}}}, nil
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			trial, err := m.Try("a", &v1alpha1.QueueUnitSpec{}, halfOfLimit)
			if err != nil {
				t.Error(err)
				return
			}
			answer, err := trial.Why(only("a"))
			if err != nil || strings.Contains(fmt.Sprintf("%+v", answer), "secret") || answer.Reason != wellknown.ReasonQuotaExceeded || answer.Position != 1 {
				t.Errorf("%v, %+v", err, answer)
			}
			if _, err := m.Why("b", "secret", everything()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	after, err := m.Why("b", "secret", everything())
	if err != nil || !reflect.DeepEqual(before, after) {
		t.Errorf("%v: before %+v, after %+v", err, before, after)
	}
}
