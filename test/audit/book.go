package audit

import (
	"time"
)

// book counts what the two programs write, job by job.
type book struct {
	accounts map[string]*account // by the job's UID
	order    []*account
	units    map[string]*job // by namespace and name, for writes that were refused
	statuses map[string]*ObjectWrites
	others   map[string]int
	rapid    []rapidStatus
}

// account is what one job has cost.
type account struct {
	JobWrites
	job        *job
	unitMade   Moment
	quota      Moment // first got
	released   Moment
	ended      Moment
	reasons    int // that the unit's reason was told or changed while it waited
	afterwards int // the same later
	swept      int // its unit was deleted though the garbage collector would do it
	warnings   map[string]bool
	unjudged   string
}

// rapidStatus is a status write too soon after the one before.
type rapidStatus struct {
	object string
	at     Moment
	after  time.Duration
}

func newBook() *book {
	return &book{accounts: map[string]*account{}, units: map[string]*job{}, statuses: map[string]*ObjectWrites{}, others: map[string]int{}}
}

func (b *book) of(j *job) *account {
	a := b.accounts[j.uid]
	if a == nil {
		a = &account{job: j, warnings: map[string]bool{}}
		a.Kind, a.Namespace, a.Name, a.UID = j.row.kind, j.namespace, j.name, j.uid
		a.By = map[string]int{}
		b.accounts[j.uid] = a
		b.order = append(b.order, a)
	}
	return a
}

func (b *book) see(w *world, c *change) {
	if c.unit != nil && c.job != nil {
		b.units[c.unit.namespace+"/"+c.unit.name] = c.job
	}
	b.follow(w, c)
	if !w.options.program(c.w) {
		return
	}
	switch c.w.Resource {
	case "queues", "elasticquotatrees":
		b.seeStatus(c.w)
		return
	}
	j, on := b.target(w, c)
	if j == nil {
		b.others[c.w.Verb+" "+path(c.w)]++
		return
	}
	a := b.of(j)
	what := c.w.Verb + " " + path(c.w) + ": " + purpose(c)
	if !c.w.OK() {
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
		if c.died && !j.gone.IsZero() {
			a.swept++
		}
	default:
		a.OnEvents++
		if c.event != nil && c.event.kindOf == "Warning" {
			a.warnings[c.event.reason] = true
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
func (b *book) target(w *world, c *change) (*job, target) {
	switch {
	case c.w.Resource == "queueunits":
		if c.job != nil {
			return c.job, onUnit
		}
		return b.units[c.w.Namespace+"/"+c.w.Name], onUnit
	case c.w.Resource == "events":
		if c.event == nil {
			return nil, onEvents
		}
		if j := w.jobs[c.event.uid]; j != nil {
			return j, onEvents
		}
		if u := w.units[c.event.uid]; u != nil {
			return w.jobOf(u), onEvents
		}
		return b.units[c.event.namespace+"/"+c.event.name], onEvents
	}
	if j := c.job; j != nil && c.pod == nil {
		if root := w.rootOf(j); root != nil {
			j = root
		}
		return j, onJob
	}
	if r := rowOf(c.w.Group, c.w.Version, c.w.Resource); r != nil {
		return w.named[jobKey{r, c.w.Namespace, c.w.Name}], onJob
	}
	return nil, onJob
}

// purpose is what a write was for, in a word or two.
func purpose(c *change) string {
	now, was := (*unitFacts)(nil), c.unitWas
	if c.unit != nil {
		now = c.unit.facts
	}
	switch {
	case !c.w.OK():
		return "refused " + itoa(c.w.Code)
	case c.same:
		return "changed nothing"
	case c.event != nil:
		return c.event.kindOf + " " + c.event.reason
	case c.born:
		return "create"
	case c.died:
		return "delete"
	case c.released:
		return "release"
	case c.suspended:
		return "suspend"
	case now != nil && was != nil && now.phase != was.phase:
		return "phase " + now.phase
	case now != nil && was != nil && now.evicted != was.evicted:
		return "evicted"
	case now != nil && was != nil && now.reason != was.reason:
		return "reason " + now.reason
	case c.w.Subresource == "status":
		return "status"
	}
	return "object"
}

// follow keeps what the budget depends on, whoever wrote it.
func (b *book) follow(w *world, c *change) {
	j := c.job
	if j == nil || !c.w.OK() || c.pod != nil || !j.facts.queued() {
		return
	}
	a := b.of(j)
	if c.unit != nil {
		a.followUnit(c)
		return
	}
	switch {
	case c.released && a.released.IsZero():
		a.released = c.w.moment()
	case c.suspended:
		a.unjudged = "suspended again"
	}
	if was := c.jobWas; was != nil && (was.steered != j.facts.steered || was.quotaName != j.facts.quotaName) {
		a.unjudged = "steered by hand"
	}
	a.ended = j.ended
	if a.ended.IsZero() {
		a.ended = j.gone
	}
}

func (a *account) followUnit(c *change) {
	now, was := c.unit.facts, c.unitWas
	switch {
	case c.died:
		return
	case was == nil:
		if !a.unitMade.IsZero() {
			a.unjudged = "more than one unit"
		}
		a.unitMade = c.w.moment()
		return
	case now.evicted, now.attempts > 1:
		a.unjudged = "evicted"
	case now.active != was.active || now.quotaName != was.quotaName || now.total.differences(was.total, "", "") != "":
		a.unjudged = "its unit's spec changed"
	}
	if now.holds() && a.quota.IsZero() {
		a.quota = c.w.moment()
	}
	if now.phase == was.phase && now.reason != was.reason {
		if now.holds() {
			a.afterwards++
		} else {
			a.reasons++
		}
	}
}

// seeStatus counts the writes of the status of queues and trees.
func (b *book) seeStatus(w *Write) {
	key := w.Resource + " " + w.Namespace + "/" + w.Name
	s := b.statuses[key]
	if s == nil {
		s = &ObjectWrites{Object: key}
		b.statuses[key] = s
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
	if after := w.Time.Sub(s.last); !s.last.IsZero() && after < statusPause-statusTolerance {
		b.rapid = append(b.rapid, rapidStatus{key, w.moment(), after})
	}
	s.last = w.Time
}

const (
	statusPause     = 5 * time.Second
	statusTolerance = 500 * time.Millisecond
)
