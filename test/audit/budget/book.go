// Package budget counts the writes of the two programs for each job, and what a job may cost.
package budget

import (
	"strconv"
	"time"

	"kube-queue.dev/kube-queue/test/audit/facts"
	"kube-queue.dev/kube-queue/test/audit/state"
)

// Book counts the writes of the two programs for each job.
type Book struct {
	accounts map[string]*account // by the job's UID
	Order    []*account
	// Statuses counts the writes of the status of Queues and trees.
	Statuses int
	Rapid    []rapidStatus
	written  map[string]time.Time // the last write of each status
}

// account has the writes for one job.
type account struct {
	JobWrites
	Job      *state.Job
	unitMade facts.Moment
	quota    facts.Moment // first got
	released facts.Moment
	ended    facts.Moment
	reasons  int             // writes of the reason or the message while the unit waited
	shown    map[string]bool // the reasons of these
	asked    int             // those before or after which the unit waited for somebody to do something
	checked  int             // writes for its admission checks: reservations, messages and returns
	nodes    int             // events that show what an autoscaler reports
	more     int             // writes that any job may cost in addition
	once     map[string]bool // those of them that it may cost once
	unjudged string
}

// allowOnce allows one more write, the first time that the job gets it.
func (a *account) allowOnce(what string) {
	if !a.once[what] {
		a.once[what] = true
		a.more++
	}
}

// rapidStatus is a status write too soon after the previous one.
type rapidStatus struct {
	Object string
	At     facts.Moment
	After  time.Duration
}

func NewBook() *Book {
	return &Book{accounts: map[string]*account{}, written: map[string]time.Time{}}
}

func (b *Book) of(j *state.Job) *account {
	a := b.accounts[j.UID]
	if a == nil {
		a = &account{Job: j, shown: map[string]bool{}, once: map[string]bool{}}
		a.Kind, a.Namespace, a.Name, a.UID = j.Row.Kind, j.Namespace, j.Name, j.UID
		a.By = map[string]int{}
		b.accounts[j.UID] = a
		b.Order = append(b.Order, a)
	}
	return a
}

func (b *Book) See(s *state.State, c *state.Change) {
	b.follow(c)
	if !c.Write.ByProgram() {
		return
	}
	switch c.Write.Resource {
	case "queues", "elasticquotatrees":
		b.seeStatus(s.Options, c.Write)
		return
	}
	j, kind := target(s, c)
	if j == nil {
		return // an object of no job
	}
	a := b.of(j)
	what := c.Write.Verb + " " + path(c.Write) + ": " + purpose(c)
	if !c.Write.OK() {
		a.Failed++
		a.By[what]++
		return
	}
	a.By[what]++
	switch kind {
	case onJob:
		a.OnJob++
	case onUnit:
		a.OnUnit++
		if c.Died && !j.Gone.IsZero() {
			a.allowOnce("deletion of the unit of a deleted job, if the garbage collector is slow")
		}
	default:
		a.OnEvents++
		a.allowEvent(c.Event)
	}
}

func (a *account) allowEvent(e *facts.Event) {
	if e == nil {
		return
	}
	if e.Type == "Warning" {
		a.allowOnce("warning " + e.Reason)
	}
	switch e.Reason {
	case "ControllerDown":
		a.allowOnce("event that says what is true afterwards")
	case nodesPending:
		a.nodes++
	}
}

func path(w *facts.Write) string {
	if w.Subresource != "" {
		return w.Resource + "/" + w.Subresource
	}
	return w.Resource
}

// on is the kind of object that a write is on.
type on int

const (
	onJob on = iota
	onUnit
	onEvents
)

// target finds the job that a write is for.
func target(s *state.State, c *state.Change) (*state.Job, on) {
	w := c.Write
	switch {
	case w.Resource == "queueunits":
		if c.Job != nil {
			return c.Job, onUnit
		}
		return jobOf(s, s.UnitNamed(w.Namespace, w.Name)), onUnit // it was refused
	case w.Resource == "events":
		if c.Event == nil {
			return nil, onEvents
		}
		if j := s.Jobs[c.Event.UID]; j != nil {
			return j, onEvents
		}
		if u := s.Units[c.Event.UID]; u != nil {
			return jobOf(s, u), onEvents
		}
		return jobOf(s, s.UnitNamed(c.Event.Namespace, c.Event.Name)), onEvents
	case c.Job != nil && c.Pod == nil:
		if root := s.RootOf(c.Job); root != nil {
			return root, onJob
		}
		return c.Job, onJob
	}
	if r := facts.RowOf(w.Group, w.Version, w.Resource); r != nil {
		return s.JobNamed(r, w.Namespace, w.Name), onJob
	}
	return nil, onJob
}

func jobOf(s *state.State, u *state.Unit) *state.Job {
	if u == nil {
		return nil
	}
	return s.JobOf(u)
}

// purpose describes in one or two words what a write was for.
func purpose(c *state.Change) string {
	now, was := (*facts.Unit)(nil), c.UnitWas
	if c.Unit != nil {
		now = c.Unit.Facts
	}
	switch {
	case !c.Write.OK():
		return "refused " + strconv.Itoa(c.Write.Code)
	case c.Same:
		return "changed nothing"
	case c.Event != nil:
		return c.Event.Type + " " + c.Event.Reason
	case c.Born:
		return "create"
	case c.Died:
		return "delete"
	case c.Released:
		return "release"
	case c.Suspended:
		return "suspend"
	case now != nil && was != nil && now.Phase != was.Phase:
		return "phase " + now.Phase
	case now != nil && was != nil && now.Evicted != was.Evicted:
		return "evicted"
	case now != nil && was != nil && now.Unscheduled != was.Unscheduled:
		return "unscheduled pods"
	case now != nil && was != nil && now.OverQuota != was.OverQuota:
		return "over quota"
	case now != nil && was != nil && now.PodsReady && !was.PodsReady:
		return "pods ready"
	case now != nil && was != nil && now.Reason != was.Reason:
		return "reason " + now.Reason
	case c.Write.Subresource == "status":
		return "status"
	}
	return "object"
}

// follow records the writes of all users that the budget depends on.
func (b *Book) follow(c *state.Change) {
	j := c.Job
	if j == nil || !c.Write.OK() || c.Pod != nil || !j.Facts.Queued() {
		return
	}
	a := b.of(j)
	if c.Unit != nil {
		a.followUnit(c)
		return
	}
	switch {
	case c.Released && a.released.IsZero():
		a.released = c.Write.Moment()
	case c.Suspended:
		a.unjudged = "suspended again"
	}
	if was := c.JobWas; was != nil && (was.Steered != j.Facts.Steered || was.QuotaName != j.Facts.QuotaName) {
		a.unjudged = "steered by hand"
	}
	a.ended = j.Over()
}

func (a *account) followUnit(c *state.Change) {
	now, was := c.Unit.Facts, c.UnitWas
	switch {
	case c.Died:
		return
	case was == nil:
		if !a.unitMade.IsZero() {
			a.unjudged = "more than one unit"
		}
		a.unitMade = c.Write.Moment()
		return
	case now.Evicted, now.Attempts > 1:
		a.unjudged = "evicted"
	case now.Active != was.Active || now.QuotaName != was.QuotaName || !now.Total.Equal(was.Total):
		a.unjudged = "its unit's spec changed"
	}
	if now.PodsReady && !was.PodsReady && now.Phase == was.Phase && now.Holds() {
		a.allowOnce("condition PodsReady that changes nothing else")
	}
	if now.Unscheduled != was.Unscheduled && now.Holds() && now.Phase == was.Phase {
		a.more++
	}
	if now.OverQuota != was.OverQuota && now.Holds() {
		a.more++
	}
	if now.Holds() && now.Phase != facts.Reserved && a.quota.IsZero() {
		a.quota = c.Write.Moment() // a Reserved unit waits, too
	}
	if now.Phase == facts.Reserved || was.Phase == facts.Reserved && now.Queued() {
		a.checked++
		a.more++
		a.allowOnce("event that the job waits for its checks")
	}
	switch {
	case now.Phase != was.Phase:
	case now.Holds():
		if now.Reason != was.Reason {
			a.allowOnce("reason after the release")
		}
	case now.Reason != was.Reason || now.Says != was.Says:
		a.reasons++
		a.shown[now.Reason] = true
		if was.Reason != "" && (was.Asks() || now.Asks()) {
			a.asked++
		}
	}
}

// seeStatus counts the writes of the status of queues and trees.
func (b *Book) seeStatus(o *facts.Options, w *facts.Write) {
	if !w.OK() || w.Subresource != "status" {
		return
	}
	object := w.Resource + " " + w.Namespace + "/" + w.Name
	b.Statuses++
	last, before := b.written[object]
	if after := w.Time.Sub(last); before && after < *o.StatusInterval-statusTolerance {
		b.Rapid = append(b.Rapid, rapidStatus{object, w.Moment(), after})
	}
	b.written[object] = w.Time
}

// statusTolerance is how much a delayed answer may shorten the time between two writes.
const statusTolerance = 500 * time.Millisecond
