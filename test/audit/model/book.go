package model

import (
	"time"
)

// Book counts the writes of the two programs for each job.
type Book struct {
	accounts map[string]*account // by the job's UID
	Order    []*account
	units    map[string]*Job // by namespace and name, for writes that were refused
	Statuses map[string]*ObjectWrites
	Others   map[string]int
	Rapid    []rapidStatus

	decider  string   // who held the lease of deciderLease last
	deciders []Moment // when another process took it
}

// account has the writes for one job.
type account struct {
	JobWrites
	Job        *Job
	unitMade   Moment
	quota      Moment // first got
	released   Moment
	ended      Moment
	reasons    int // writes of the reason or the message while the unit waited
	asked      int // those before or after which the unit waited for somebody to do something
	afterwards int // writes of the reason after the release
	checked    int // writes for its admission checks: reservations, messages and returns
	podsReady  int // writes of the condition PodsReady that change nothing else
	overQuota  int // changes of the condition OverQuota
	placing    int // changes of the condition PodsScheduled
	swept      int // explicit deletes of its unit, which the garbage collector would delete too
	nodes      int // events that show what an autoscaler reports
	warnings   map[string]bool
	shown      map[string]bool // the reasons that the unit showed while it waited
	unjudged   string
}

// rapidStatus is a status write too soon after the previous one.
type rapidStatus struct {
	Object string
	At     Moment
	After  time.Duration
}

func NewBook() *Book {
	return &Book{accounts: map[string]*account{}, units: map[string]*Job{}, Statuses: map[string]*ObjectWrites{}, Others: map[string]int{}}
}

func (b *Book) of(j *Job) *account {
	a := b.accounts[j.UID]
	if a == nil {
		a = &account{Job: j, warnings: map[string]bool{}, shown: map[string]bool{}}
		a.Kind, a.Namespace, a.Name, a.UID = j.row.kind, j.Namespace, j.name, j.UID
		a.By = map[string]int{}
		b.accounts[j.UID] = a
		b.Order = append(b.Order, a)
	}
	return a
}

func (b *Book) See(w *World, c *Change) {
	if c.Unit != nil && c.Job != nil {
		b.units[c.Unit.Namespace+"/"+c.Unit.Name] = c.Job
	}
	b.follow(w, c)
	if !w.Options.Program(c.Write) {
		return
	}
	if lease, is := c.Write.Body.(*LeaseFacts); is {
		b.seeLease(c.Write, lease)
	}
	switch c.Write.Resource {
	case "queues", "elasticquotatrees":
		b.seeStatus(w.Options, c.Write)
		return
	}
	j, on := b.target(w, c)
	if j == nil {
		b.Others[c.Write.Verb+" "+path(c.Write)]++
		return
	}
	a := b.of(j)
	what := c.Write.Verb + " " + path(c.Write) + ": " + purpose(c)
	if !c.Write.OK() {
		a.Failed++
		a.By[what]++
		return
	}
	a.By[what]++
	switch on {
	case onJob:
		a.OnJob++
	case onUnit:
		a.OnUnit++
		if c.Died && !j.Gone.IsZero() {
			a.swept++
		}
	default:
		a.OnEvents++
		if c.Event != nil && c.Event.kindOf == "Warning" {
			a.warnings[c.Event.reason] = true
		}
		if c.Event != nil && c.Event.reason == nodesPending {
			a.nodes++
		}
	}
}

func path(w *Write) string {
	if w.Subresource != "" {
		return w.Resource + "/" + w.Subresource
	}
	return w.Resource
}

type target int

const (
	onJob target = iota
	onUnit
	onEvents
)

// target finds the job that a write is for.
func (b *Book) target(w *World, c *Change) (*Job, target) {
	switch {
	case c.Write.Resource == "queueunits":
		if c.Job != nil {
			return c.Job, onUnit
		}
		return b.units[c.Write.Namespace+"/"+c.Write.Name], onUnit
	case c.Write.Resource == "events":
		if c.Event == nil {
			return nil, onEvents
		}
		if j := w.Jobs[c.Event.uid]; j != nil {
			return j, onEvents
		}
		if u := w.Units[c.Event.uid]; u != nil {
			return w.JobOf(u), onEvents
		}
		return b.units[c.Event.namespace+"/"+c.Event.name], onEvents
	}
	if j := c.Job; j != nil && c.Pod == nil {
		if root := w.RootOf(j); root != nil {
			j = root
		}
		return j, onJob
	}
	if r := rowOf(c.Write.Group, c.Write.Version, c.Write.Resource); r != nil {
		return w.named[jobKey{r, c.Write.Namespace, c.Write.Name}], onJob
	}
	return nil, onJob
}

// purpose describes in one or two words what a write was for.
func purpose(c *Change) string {
	now, was := (*UnitFacts)(nil), c.UnitWas
	if c.Unit != nil {
		now = c.Unit.Facts
	}
	switch {
	case !c.Write.OK():
		return "refused " + itoa(c.Write.Code)
	case c.Same:
		return "changed nothing"
	case c.Event != nil:
		return c.Event.kindOf + " " + c.Event.reason
	case c.Born:
		return "create"
	case c.Died:
		return "delete"
	case c.Released:
		return "release"
	case c.suspended:
		return "suspend"
	case now != nil && was != nil && now.Phase != was.Phase:
		return "phase " + now.Phase
	case now != nil && was != nil && now.Evicted != was.Evicted:
		return "evicted"
	case now != nil && was != nil && now.unscheduled != was.unscheduled:
		return "unscheduled pods"
	case now != nil && was != nil && now.OverQuota != was.OverQuota:
		return "over quota"
	case now != nil && was != nil && now.PodsReady && !was.PodsReady:
		return "pods ready"
	case now != nil && was != nil && now.reason != was.reason:
		return "reason " + now.reason
	case c.Write.Subresource == "status":
		return "status"
	}
	return "object"
}

// follow records the writes of all users that the budget depends on.
func (b *Book) follow(w *World, c *Change) {
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
	case c.suspended:
		a.unjudged = "suspended again"
	}
	if was := c.JobWas; was != nil && (was.steered != j.Facts.steered || was.quotaName != j.Facts.quotaName) {
		a.unjudged = "steered by hand"
	}
	a.ended = j.Ended
	if a.ended.IsZero() {
		a.ended = j.Gone
	}
}

func (a *account) followUnit(c *Change) {
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
	case now.Active != was.Active || now.quotaName != was.quotaName || now.Total.Differences(was.Total, "", "") != "":
		a.unjudged = "its unit's spec changed"
	}
	if now.PodsReady && !was.PodsReady && now.Phase == was.Phase && now.Holds() {
		a.podsReady++
	}
	if now.unscheduled != was.unscheduled && now.Holds() && now.Phase == was.Phase {
		a.placing++
	}
	if now.OverQuota != was.OverQuota && now.Holds() {
		a.overQuota++
	}
	if now.Holds() && now.Phase != Reserved && a.quota.IsZero() {
		a.quota = c.Write.Moment() // a Reserved unit waits, too
	}
	if now.Phase == Reserved || was.Phase == Reserved && now.queued() {
		a.checked++
	}
	switch {
	case now.Phase != was.Phase:
	case now.Holds():
		if now.reason != was.reason {
			a.afterwards++
		}
	case now.reason != was.reason || now.says != was.says:
		a.reasons++
		a.shown[now.reason] = true
		if was.reason != "" && (was.asks() || now.asks()) {
			a.asked++
		}
	}
}

// seeLease records that another process has become the leader. The new leader does not know when
// its predecessor last wrote why a unit waits.
func (b *Book) seeLease(w *Write, lease *LeaseFacts) {
	if !w.OK() || w.Name != deciderLease || lease.Holder == "" || lease.Holder == b.decider {
		return
	}
	b.decider = lease.Holder
	b.deciders = append(b.deciders, w.Moment())
}

// decidersBetween counts the processes that became the leader between two times.
func (b *Book) decidersBetween(from, to time.Time) int {
	count := 0
	for _, began := range b.deciders {
		if began.Time.After(from) && began.Time.Before(to) {
			count++
		}
	}
	return count
}

// seeStatus counts the writes of the status of queues and trees.
func (b *Book) seeStatus(o *Options, w *Write) {
	key := w.Resource + " " + w.Namespace + "/" + w.Name
	s := b.Statuses[key]
	if s == nil {
		s = &ObjectWrites{Object: key}
		b.Statuses[key] = s
	}
	switch {
	case !w.OK():
		s.Failed++
		return
	case w.Subresource != "status":
		s.Others++
		return
	}
	s.Status++
	if after := w.Time.Sub(s.last); !s.last.IsZero() && after < *o.StatusInterval-statusTolerance {
		b.Rapid = append(b.Rapid, rapidStatus{key, w.Moment(), after})
	}
	s.last = w.Time
}

// statusTolerance is how much a delayed answer may shorten the time between two writes.
const statusTolerance = 500 * time.Millisecond
