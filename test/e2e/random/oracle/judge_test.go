package oracle

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const delay = 2 * time.Second

// cpus returns an amount of whole CPUs.
func cpus(count int64) Amounts { return Amounts{"cpu": 1000 * count} }

// tree has a group with a max of 4 CPUs below a node with a max of 6.
var tree = []Node{
	{Path: "root/all", Namespaces: []string{"a", "b"}, Max: cpus(6)},
	{Path: "root/all/a", Namespaces: []string{"a"}, Max: cpus(4)},
}

// story is a list of events, with a time in seconds. The revisions are in this order.
type story struct{ events []Event }

func (s *story) at(seconds float64, e Event) *story {
	e.At = start.Add(time.Duration(seconds * float64(time.Second)))
	e.Revision = uint64(len(s.events) + 1)
	s.events = append(s.events, e)
	return s
}

func pods(namespace, job string, count int64) Event {
	return Event{Pod: &Pod{Namespace: namespace, Name: job + "-pod", UID: fmt.Sprint(namespace, job, count), Job: job, Requests: cpus(count)}}
}

func idle(e Event) Event {
	pod := *e.Pod
	pod.Idle = true
	return Event{Pod: &pod}
}

// growth returns another unit of the job.
func growth(e Event) Event {
	unit := *e.Unit
	unit.UID += "-growth"
	return Event{Unit: &unit}
}

// until returns the pod with a grace period that ends after some seconds.
func until(e Event, seconds float64) Event {
	pod := *e.Pod
	pod.Until = start.Add(time.Duration(seconds * float64(time.Second)))
	return Event{Pod: &pod}
}

func gone(e Event) Event {
	e.Gone = true
	return e
}

func admitted(namespace, job string, count int64) Event {
	return Event{Unit: &Unit{Namespace: namespace, UID: namespace + job, Job: job, Admitted: true, Holds: true, Attempts: 1, Requests: cpus(count)}}
}

func status(all, a int64) Event {
	return Event{Used: map[string]Amounts{"root/all": cpus(all), "root/all/a": cpus(a)}}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name  string
		story *story
		down  []Span
		// want is a part of the first violation, or empty if there is none.
		want string
	}{
		{name: "what fits may be admitted",
			story: new(story).at(0, admitted("a", "one", 2)).at(9, admitted("a", "two", 2))},
		{name: "what does not fit together with what was admitted may not",
			story: new(story).at(0, admitted("a", "one", 3)).at(9, admitted("a", "two", 2)), want: "a/two was admitted at revision 2, but then root/all/a uses 5000 of cpu"},
		{name: "nor what does not fit at the node above",
			story: new(story).at(0, admitted("a", "one", 4)).at(9, admitted("b", "two", 3)), want: "root/all uses 7000"},
		{name: "a job that has grown uses what its pods request",
			story: new(story).at(0, admitted("a", "one", 2)).at(1, pods("a", "one", 3)).at(9, admitted("a", "two", 2)), want: "root/all/a uses 5000"},
		{name: "a job with fewer pods uses what it was admitted with",
			story: new(story).at(0, admitted("a", "one", 3)).at(1, pods("a", "one", 1)).at(9, admitted("a", "two", 2)), want: "root/all/a uses 5000"},
		{name: "its pods are not added to what it was admitted with",
			story: new(story).at(0, admitted("a", "one", 2)).at(1, pods("a", "one", 2)).at(9, admitted("a", "two", 2))},
		{name: "pods without a unit count",
			story: new(story).at(0, pods("a", "one", 3)).at(9, admitted("a", "two", 2)), want: "one: admitted with 0, pods 3000"},
		{name: "pods without a unit count after the deletion of the unit",
			story: new(story).at(0, admitted("a", "one", 3)).at(1, pods("a", "one", 3)).at(2, gone(admitted("a", "one", 3))).
				at(9, admitted("a", "two", 2)), want: "root/all/a uses 5000"},
		{name: "pods that have just been created do not count",
			story: new(story).at(0, pods("a", "one", 3)).at(1.9, admitted("a", "two", 2))},
		{name: "nor pods that have ended",
			story: new(story).at(0, pods("a", "one", 3)).at(8, idle(pods("a", "one", 3))).at(9, admitted("a", "two", 2))},
		{name: "nor pods that wait at the gate, which count once they have passed and are known",
			story: new(story).at(0, idle(pods("a", "one", 3))).at(8, pods("a", "one", 3)).at(9, admitted("a", "two", 2))},
		{name: "pods that have passed count",
			story: new(story).at(0, idle(pods("a", "one", 3))).at(6, pods("a", "one", 3)).at(9, admitted("a", "two", 2)), want: "root/all/a uses 5000"},
		{name: "the pods of growth are not added to what it was admitted with",
			story: new(story).at(0, admitted("a", "one", 1)).at(1, growth(admitted("a", "one", 2))).at(2, pods("a", "one", 3)).at(9, admitted("a", "two", 1))},
		{name: "growth counts without pods",
			story: new(story).at(0, admitted("a", "one", 1)).at(1, growth(admitted("a", "one", 2))).at(9, admitted("a", "two", 2)), want: "root/all/a uses 5000"},
		{name: "nor pods that are gone",
			story: new(story).at(0, pods("a", "one", 3)).at(8, gone(pods("a", "one", 3))).at(9, admitted("a", "two", 2))},
		{name: "pods that are being deleted count",
			story: new(story).at(0, pods("a", "one", 3)).at(8, until(pods("a", "one", 3), 38)).at(9, admitted("a", "two", 2)), want: "root/all/a uses 5000"},
		{name: "until the end of their grace period",
			story: new(story).at(0, pods("a", "one", 3)).at(8, until(pods("a", "one", 3), 8.5)).at(9, admitted("a", "two", 2))},
		{name: "a status contains all pods",
			story: new(story).at(0, pods("a", "one", 3)).at(8, status(3, 3))},
		{name: "a status without a pod is wrong",
			story: new(story).at(0, pods("a", "one", 3)).at(7.1, status(3, 2)), want: "root/all/a has used 2000 of cpu, and its jobs and pods use 3000"},
		{name: "a status may lack a pod that was created after its preparation",
			story: new(story).at(0, pods("a", "one", 3)).at(6.9, status(0, 0))},
		{name: "but another status must follow",
			story: new(story).at(0, status(0, 0)).at(1, pods("a", "one", 3)).at(13.1, pods("b", "other", 1)), want: "the last status does not contain"},
		{name: "within the intervals of publication",
			story: new(story).at(0, status(0, 0)).at(1, pods("a", "one", 3)).at(12.9, pods("b", "other", 1))},
		{name: "a status contains what was admitted, beside the pods of others",
			story: new(story).at(0, admitted("a", "one", 1)).at(0, pods("a", "other", 2)).at(8, status(3, 3))},
		{name: "a status with less is wrong",
			story: new(story).at(0, admitted("a", "one", 1)).at(0, pods("a", "other", 2)).at(8, status(2, 2)), want: "has used 2000 of cpu, and its jobs and pods use 3000"},
		{name: "unless it was admitted after its preparation",
			story: new(story).at(0, pods("a", "other", 2)).at(3, admitted("a", "one", 1)).at(8, status(2, 2))},
		{name: "while the controller runs",
			story: new(story).at(0, status(0, 0)).at(1, pods("a", "one", 3)).at(14, pods("b", "other", 1)),
			down:  []Span{{start.Add(2 * time.Second), start.Add(3 * time.Second)}}},
		{name: "and after it has started",
			story: new(story).at(0, status(0, 0)).at(1, pods("a", "one", 3)).at(15.1, pods("b", "other", 1)),
			down:  []Span{{start.Add(2 * time.Second), start.Add(3 * time.Second)}}, want: "the last status does not contain"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := Judge(tree, c.story.events, c.down, delay)
			switch {
			case c.want == "" && len(v.Violations) > 0, c.want != "" && len(v.Violations) == 0:
				t.Errorf("violations %v, want %q", v.Violations, c.want)
			case c.want != "" && !strings.Contains(v.Violations[0].What, c.want):
				t.Errorf("violation %q, want %q", v.Violations[0].What, c.want)
			}
		})
	}
}

func TestRevisionsDecideWhatWasFirst(t *testing.T) {
	s := new(story).at(0, pods("a", "one", 3)).at(8, gone(pods("a", "one", 3))).at(7, admitted("a", "two", 2))
	s.events[1], s.events[2] = s.events[2], s.events[1]
	if v := Judge(tree, s.events, nil, delay); len(v.Violations) > 0 {
		t.Error(v.Violations)
	}
}

func TestTheVerdictCountsWhatWasVerified(t *testing.T) {
	s := new(story).at(0, admitted("a", "one", 1)).at(1, pods("a", "one", 2)).at(2.5, status(0, 0)).at(4, status(2, 2)).at(5, admitted("a", "two", 2))
	v := Judge(tree, s.events, nil, delay)
	if v.Admissions != 2 || v.Decided != 1 || v.Statuses != 2 || v.Moments != 3 || v.Lag != 1500*time.Millisecond || len(v.Violations) != 0 {
		t.Errorf("%+v", v)
	}
}

// Two of three pods are enough to explain the difference. All time counts until a status has all of them.
func TestPodsThatAreNotChargedAreCountedBySeconds(t *testing.T) {
	s := new(story).at(0, status(1, 1)).at(0, pods("a", "one", 1)).at(0, pods("a", "two", 1)).at(0, pods("a", "three", 1)).
		at(13, status(1, 1)).at(14, pods("b", "other", 1)).at(16, status(4, 3)).at(20, pods("b", "another", 1))
	if v := Judge(tree, s.events, nil, delay); v.Uncharged != 2*3*time.Second {
		t.Errorf("%v, want 6 pod-seconds: %+v", v.Uncharged, v)
	}
}
