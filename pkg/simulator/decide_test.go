package simulator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/pkg/simulator"
	"kube-queue.dev/kube-queue/test/require"
)

// situation has a root with 4 cpu. a and b are each guaranteed 1.
type situation struct {
	simulator.Situation
	t     *testing.T
	names *resources.Names
}

func newSituation(t *testing.T, reclaim bool) *situation {
	t.Helper()
	names := resources.NewNames()
	amount := func(cpu string) map[string]resource.Quantity {
		return map[string]resource.Quantity{"cpu": resource.MustParse(cpu)}
	}
	backend, _, err := tree.New(names, tree.Node{Name: "root", Max: amount("4"), Children: []tree.Node{
		{Name: "a", Namespaces: []string{"a"}, Min: amount("1"), Max: amount("4")}, {Name: "b", Namespaces: []string{"b"}, Min: amount("1"), Max: amount("4")}}}, tree.Options{Reclaim: reclaim})
	require.NoError(t, err)
	return &situation{Situation: simulator.Situation{Backend: backend}, t: t, names: names}
}

func (s *situation) add(key, cpu string, phase scheduler.Phase, priority int32) {
	s.t.Helper()
	requests, err := resources.Request(s.names, map[string]resource.Quantity{"cpu": resource.MustParse(cpu)})
	require.NoError(s.t, err)
	namespace, _, _ := strings.Cut(key, "/")
	u := scheduler.Unit{Key: key, Reason: "Outdated", Facts: scheduler.Facts{UID: key, Phase: phase, Priority: priority, Submitted: int64(len(s.Units)),
		Version: 99, Demand: quota.Demand{Requests: requests.With(s.names.ID(quota.JobsResource), 1), Preemptible: true}}}
	if phase != scheduler.Waiting {
		u.Quota, u.Attempts, u.DequeuedAt = "root/"+namespace, 1, at.Add(-time.Hour)
	}
	s.Units = append(s.Units, u)
}

var at = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func (s *situation) decided() string {
	var all []string
	for i, d := range simulator.Decide(s.Situation, at) {
		text := s.Units[i].Key
		switch {
		case d.Admitted:
			text += " starts"
		case d.Evicted:
			text += " is evicted"
		case d.Reason != "":
			text += " " + string(d.Reason)
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func TestWhatStartsAtOnceFollowsFromWhatHoldsQuota(t *testing.T) {
	s := newSituation(t, false)
	s.add("a/runs", "2", scheduler.Running, 0)
	s.add("a/large", "3", scheduler.Waiting, 0)
	s.add("b/small", "1", scheduler.Waiting, 0)
	s.add("b/urgent", "1", scheduler.Waiting, 7)
	s.add("b/late", "1", scheduler.Waiting, 0)
	s.add("c/nowhere", "1", scheduler.Waiting, 0)
	s.add("a/never", "5", scheduler.Waiting, 0)
	s.add("a/invalid", "1", scheduler.Waiting, 0)
	u := &s.Units[len(s.Units)-1]
	u.Held, u.HeldReported, u.Reason = &quota.Refusal{Reason: wellknown.ReasonInvalidRequest, Sentence: "it is invalid"}, true, wellknown.ReasonInvalidRequest
	if got, want := s.decided(), "a/runs, a/large QuotaExceeded, b/small starts, b/urgent starts, b/late QuotaExceeded, c/nowhere NoQuota, a/never ExceedsMaxQuota, a/invalid InvalidRequest"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAQueueThatIsStoppedStartsNothing(t *testing.T) {
	s := newSituation(t, false)
	s.Queues = []scheduler.QueueChanged{{Queue: "root-a", Stop: scheduler.Hold}}
	s.add("a/one", "1", scheduler.Waiting, 0)
	s.add("b/other", "1", scheduler.Waiting, 0)
	if got, want := s.decided(), "a/one QueueStopped, b/other starts"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAUnitThatIsOwedItsQuotaStartsAfterAnEviction(t *testing.T) {
	s := newSituation(t, true)
	s.add("a/old", "2", scheduler.Running, 0)
	s.add("a/new", "2", scheduler.Running, 0)
	s.add("b/owed", "1", scheduler.Waiting, 0)
	if got, want := s.decided(), "a/old, a/new is evicted, b/owed starts"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A unit that is being evicted stops immediately, like those that would be.
func TestWhatIsBeingEvictedIsFree(t *testing.T) {
	s := newSituation(t, false)
	s.add("a/leaves", "4", scheduler.Running, 0)
	s.Units[0].Evicted = true
	s.add("b/new", "2", scheduler.Waiting, 0)
	if got, want := s.decided(), "a/leaves is evicted, b/new starts"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestWhatIsDecidedDependsOnNothingElse(t *testing.T) {
	s := newSituation(t, false)
	for i := range 200 {
		s.add(fmt.Sprintf("a/%03d", i), "1", scheduler.Waiting, 0)
	}
	first := simulator.Decide(s.Situation, at)
	started := 0
	for _, d := range first {
		if d.Admitted {
			started++
		} else if d.Reason != "QuotaExceeded" || d.Message == "" || d.Quota != "root/a" {
			t.Fatalf("%+v", d)
		}
	}
	if started != 4 {
		t.Errorf("%d start in 4 cpu", started)
	}
}

// starts lists when units start, in minutes. Each runs for as long as the function says.
func (s *situation) starts(minutes func(key string) int) string {
	var all []string
	for i, start := range simulator.Starts(s.Situation, at, 24*time.Hour, func(i int) time.Duration { return time.Duration(minutes(s.Units[i].Key)) * time.Minute }) {
		if start.After != simulator.NotKnown {
			all = append(all, fmt.Sprintf("%s %.0f", s.Units[i].Key, start.After.Minutes()))
		}
	}
	return strings.Join(all, ", ")
}

func TestUnitsStartWhenOthersEnd(t *testing.T) {
	s := newSituation(t, false)
	s.add("a/runs", "4", scheduler.Running, 0)
	s.add("b/first", "3", scheduler.Waiting, 0)
	s.add("b/second", "2", scheduler.Waiting, 0)
	s.add("a/third", "1", scheduler.Waiting, 0)
	s.add("a/never", "5", scheduler.Waiting, 0)
	if got, want := s.starts(func(string) int { return 10 }), "b/first 10, b/second 20, a/third 10"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	unknown := func(key string) int {
		if key == "b/first" {
			return 0
		}
		return 10
	}
	if got, want := s.starts(unknown), "b/first 10, a/third 10"; got != want {
		t.Errorf("if the end of one is not known: got %s, want %s", got, want)
	}
	if got := s.starts(func(string) int { return 25 * 60 }); got != "" {
		t.Errorf("beyond the horizon: got %s", got)
	}
}

func TestAUnitThatIsOwedItsQuotaIsExpectedImmediately(t *testing.T) {
	s := newSituation(t, true)
	s.add("a/old", "2", scheduler.Running, 0)
	s.add("a/new", "2", scheduler.Running, 0)
	s.add("b/owed", "1", scheduler.Waiting, 0)
	if got := s.starts(func(string) int { return 60 }); got != "b/owed 0" {
		t.Errorf("got %s", got)
	}
}
