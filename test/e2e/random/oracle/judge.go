// Package oracle checks the accounting of quota against the pods themselves. It shares no accounting with kube-queue:
// it records every version of pods, units and the status of the tree from its own watches, and then computes what the
// pods request at each admission and at each moment. A label of each pod names the job that it was created for, even
// if that job is gone.
//
// Terms. An event is a version of an object, or its deletion. Revisions order the events of all objects,
// because one etcd stores them. A pod is known once the controller must have processed it: a stated
// delay after the oracle has seen it.
//
// The oracle never demands more than must be charged: a pod counts from the moment when it is known to the revision
// at which it ends or is gone, and the admitted amount of a unit only while its phase holds quota.
package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Publication is the interval at which the controller prepares the status of the tree, and also the interval at which
// it writes what it has prepared. Both begin with the start of the controller. So a new status may be one interval
// old, and the previous one two.
const Publication = 5 * time.Second

// Event is a version of a pod, a unit or the tree. Exactly one of these is set.
type Event struct {
	// At is when the oracle received it.
	At       time.Time
	Revision uint64
	// Gone means that the object was deleted.
	Gone bool

	Pod  *Pod
	Unit *Unit
	// Used is the status of the tree: the used amounts by node path.
	Used map[string]Amounts
}

// Pod is a version of a pod.
type Pod struct {
	Namespace, Name, UID string
	// Job is the job that it was created for.
	Job      string
	Requests Amounts
	// Idle is whether its containers have ended, or it waits at the gate.
	Idle bool
	// Until is the end of the grace period of a pod that is being deleted, or zero. As in the API server, the pod
	// does not count from then on, even if it still exists.
	Until time.Time
}

// counts reports whether the pod counts at this time, because it has existed for longer than after.
func (p *pod) counts(at time.Time, after time.Duration) bool {
	return at.Sub(p.since) > after && (p.Until.IsZero() || at.Before(p.Until))
}

// Unit is a version of a QueueUnit.
type Unit struct {
	Namespace, UID string
	// Job is the name of the job.
	Job      string
	Admitted bool
	// Holds reports whether the unit holds what it was admitted with.
	Holds    bool
	Attempts int32
	Requests Amounts
}

// Node is a node of the quota tree.
type Node struct {
	// Path is the path in the status of the tree.
	Path string
	// Namespaces are those of the node and all nodes below it.
	Namespaces []string
	Max        Amounts
}

func (n Node) has(namespace string) bool { return slices.Contains(n.Namespaces, namespace) }

// Span is a time in which the controller did not run.
type Span struct{ From, To time.Time }

// Violation is a broken rule.
type Violation struct {
	At   time.Time
	What string
}

// Verdict is the result.
type Verdict struct {
	Violations []Violation
	// Admissions, Statuses and Moments count what was verified. Moments soon after a start of the controller are not
	// verified.
	Admissions, Statuses, Moments int
	// Decided counts the admissions at which pods requested more than the units that held quota.
	Decided int
	// Lag is the age of the oldest pod that a new status lacked, judging by the sums of requests.
	Lag time.Duration
	// Uncharged is the total time for which pods were missing from the status although it had to contain them. It
	// counts as few pods as explain the difference.
	Uncharged time.Duration
}

// Judge verifies the events, which may be in any order. down are the times in which the controller did not run. delay
// is how long a pod may be unknown to the controller, because watches are delayed.
func Judge(tree []Node, events []Event, down []Span, delay time.Duration) Verdict {
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.Revision, b.Revision) })
	j := &judge{tree: tree, down: down, delay: delay, pods: map[string]*pod{}, units: map[string]*unit{}}
	for _, e := range events {
		j.see(e)
	}
	return j.verdict
}

// judge is the state after the events so far.
type judge struct {
	tree    []Node
	down    []Span
	delay   time.Duration
	pods    map[string]*pod
	units   map[string]*unit
	used    map[string]Amounts
	verdict Verdict
	// moment is the last verified moment. uncharged is the number of pods that were not charged then.
	moment    time.Time
	uncharged int
}

// pod is a pod that is not idle, with the time since when it is not.
type pod struct {
	Pod
	since time.Time
	// revision is that of the last event.
	revision uint64
}

// unit is a unit, with the time since when it holds what it was admitted with.
type unit struct {
	Unit
	since time.Time
}

func (j *judge) see(e Event) {
	switch {
	case e.Pod != nil:
		j.seePod(e)
	case e.Unit != nil:
		j.seeUnit(e)
	default:
		j.seeStatus(e)
	}
	j.seeMoment(e.At)
}

func (j *judge) seePod(e Event) {
	switch known := j.pods[e.Pod.UID]; {
	case e.Gone || e.Pod.Idle:
		delete(j.pods, e.Pod.UID)
	case known != nil:
		known.Pod, known.revision = *e.Pod, e.Revision
	default:
		j.pods[e.Pod.UID] = &pod{*e.Pod, e.At, e.Revision}
	}
}

func (j *judge) seeUnit(e Event) {
	was := j.units[e.Unit.UID]
	if e.Gone {
		delete(j.units, e.Unit.UID)
		return
	}
	since := e.At
	if was != nil && was.Holds {
		since = was.since
	}
	j.units[e.Unit.UID] = &unit{*e.Unit, since}
	if e.Unit.Admitted && (was == nil || !was.Admitted || was.Attempts != e.Unit.Attempts) {
		j.seeAdmission(e)
	}
}

// seeAdmission verifies that the admitted unit fits at each of its nodes.
func (j *judge) seeAdmission(e Event) {
	j.verdict.Admissions++
	decided := false
	for _, node := range j.tree {
		if !node.has(e.Unit.Namespace) {
			continue
		}
		held, uses := j.uses(node, e.At)
		for name := range e.Unit.Requests {
			limit, limited := node.Max[name]
			if limited && uses[name] > limit {
				j.fail(e.At, "%s/%s was admitted at revision %d, but then %s uses %d of %s, and its max is %d; %s",
					e.Unit.Namespace, e.Unit.Job, e.Revision, node.Path, uses[name], name, limit, j.holders(node, e.At, name))
			}
			decided = decided || limited && uses[name] > held[name]
		}
	}
	if decided {
		j.verdict.Decided++
	}
}

// uses returns what the units of the node were admitted with, and what the node uses: for each job, the larger of
// that and what its known pods request.
func (j *judge) uses(node Node, at time.Time) (held, uses Amounts) {
	held, uses = Amounts{}, Amounts{}
	for _, u := range j.byJob(node, at, 0, j.delay) {
		held.add(u.held)
		uses.add(u.held.max(u.pods))
	}
	return held, uses
}

// use is what a job uses.
type use struct{ held, pods Amounts }

// byJob returns what each job uses, from units that have held quota for longer than after and pods that have existed
// for longer than known.
func (j *judge) byJob(node Node, at time.Time, after, known time.Duration) map[string]*use {
	jobs := map[string]*use{}
	of := func(namespace, job string) *use {
		key := namespace + "/" + job
		if jobs[key] == nil {
			jobs[key] = &use{Amounts{}, Amounts{}}
		}
		return jobs[key]
	}
	for _, u := range j.units {
		if u.Holds && node.has(u.Namespace) && at.Sub(u.since) >= after {
			of(u.Namespace, u.Job).held.add(u.Requests)
		}
	}
	for _, p := range j.pods {
		if node.has(p.Namespace) && p.counts(at, known) {
			of(p.Namespace, p.Job).pods.add(p.Requests)
		}
	}
	return jobs
}

// holders describes who uses the resource, and the pods that count.
func (j *judge) holders(node Node, at time.Time, resource string) string {
	var lines []string
	for job, u := range j.byJob(node, at, 0, j.delay) {
		lines = append(lines, fmt.Sprintf("%s: admitted with %d, pods %d", job, u.held[resource], u.pods[resource]))
	}
	for _, p := range j.pods {
		if node.has(p.Namespace) && p.counts(at, j.delay) {
			lines = append(lines, fmt.Sprintf("%s/%s: revision %d, %v old", p.Namespace, p.Name, p.revision, at.Sub(p.since).Round(time.Millisecond)))
		}
	}
	slices.Sort(lines)
	return fmt.Sprint(lines)
}

// seeStatus verifies that the used amounts contain all known pods.
func (j *judge) seeStatus(e Event) {
	j.verdict.Statuses++
	j.used = e.Used
	j.compare(e.At, Publication+j.delay, "the new status")
	for _, p := range j.pods {
		if lag := e.At.Sub(p.since); lag > j.verdict.Lag {
			if lacks, _ := j.lacks(e.At, lag-1); lacks != "" {
				j.verdict.Lag = lag
			}
		}
	}
}

// seeMoment verifies that the last used amounts contain all pods that a status must have shown by now.
func (j *judge) seeMoment(at time.Time) {
	after := 2*Publication + j.delay
	if j.used == nil || slices.ContainsFunc(j.down, func(s Span) bool { return s.From.Before(at) && at.Before(s.To.Add(after)) }) {
		j.uncharged = 0
		return
	}
	j.verdict.Moments++
	j.verdict.Uncharged += time.Duration(j.uncharged) * max(at.Sub(j.moment), 0)
	j.moment, j.uncharged = at, j.compare(at, after, "the last status")
}

// compare returns the number of pods that are not charged.
func (j *judge) compare(at time.Time, after time.Duration, what string) int {
	lacks, pods := j.lacks(at, after)
	if lacks != "" {
		j.fail(at, "%s does not contain what has been used for more than %v: %s", what, after, lacks)
	}
	return pods
}

// lacks returns which pods and jobs are missing from the used amounts, and the number of these pods. It ignores pods
// that have not existed, and jobs that have not held quota, for longer than after.
func (j *judge) lacks(at time.Time, after time.Duration) (string, int) {
	for _, node := range j.tree {
		uses := Amounts{}
		for _, u := range j.byJob(node, at, after, after) {
			delete(u.held, MaxJobs)
			uses.add(u.held.max(u.pods))
		}
		for name, needed := range uses {
			if used := j.used[node.Path][name]; used < needed {
				pods, names := j.fewest(node, at, after, name, needed-used)
				return fmt.Sprintf("%s has used %d of %s, and its jobs and pods use %d; pods: %v", node.Path, used, name, needed, names), pods
			}
		}
	}
	return "", 0
}

// fewest returns the smallest number of pods that request this much, and the names of all that may.
func (j *judge) fewest(node Node, at time.Time, after time.Duration, resource string, amount int64) (count int, names []string) {
	var requests []int64
	for _, p := range j.pods {
		if node.has(p.Namespace) && p.counts(at, after) && p.Requests[resource] > 0 {
			requests = append(requests, p.Requests[resource])
			names = append(names, p.Namespace+"/"+p.Name)
		}
	}
	slices.Sort(names)
	slices.Sort(requests)
	for _, request := range slices.Backward(requests) {
		if amount <= 0 {
			break
		}
		amount -= request
		count++
	}
	return count, names
}

// maxViolations limits the kept violations. One cause usually has many.
const maxViolations = 10

func (j *judge) fail(at time.Time, format string, args ...any) {
	if len(j.verdict.Violations) < maxViolations {
		j.verdict.Violations = append(j.verdict.Violations, Violation{at, fmt.Sprintf(format, args...)})
	}
}
