package audit

import (
	"strconv"
	"strings"
	"time"
)

// statusTolerance is how much a delayed response may shorten the time between two writes.
const statusTolerance = 500 * time.Millisecond

// writeBudget checks the number of writes against the budget, and the time between two writes of a status.
func writeBudget() law {
	b := newBook()
	written := map[string]time.Time{} // the last write of each status
	return law{
		name: "write-budget", doc: "the writes for a job stay within its budget, and the status of a queue or tree is written at most every 5 s",
		see: func(s *world, c *change, f *Check) {
			b.see(s, c)
			if !c.ofStatus() || !c.byProgram() || !c.ok() || c.subresource != "status" {
				return
			}
			f.Checked++
			object := c.resource + " " + c.namespace + "/" + c.name
			if last, before := written[object]; before && c.Time.Sub(last) < s.statusInterval-statusTolerance {
				f.fail("status-rate", c.Moment, named(object), "its status was written only %s after the previous write", c.Time.Sub(last).Round(time.Millisecond))
			}
			written[object] = c.Time
		},
		finish: func(s *world, f *Check) {
			for _, a := range b.order {
				a.settle(s)
				switch {
				case a.Total() == 0:
				case a.Unjudged != "":
					f.NotChecked++
				default:
					f.Checked++
					if a.Total() > a.Budget {
						f.fail("job-budget", a.job.created, a.job, "it took %d writes, but its budget is %d (waited %s, ran %s): %s", a.Total(), a.Budget,
							a.Waited.Round(time.Millisecond), a.Ran.Round(time.Millisecond), a.purposes())
					}
				}
			}
		},
	}
}

// ofStatus reports whether the write is of a kind whose status has the sums of many jobs.
func (w *write) ofStatus() bool { return w.resource == "queues" || w.resource == "elasticquotatrees" }

// book counts the writes of the two programs for each job.
type book struct {
	accounts map[string]*account // by the job's UID
	order    []*account
}

func newBook() *book { return &book{accounts: map[string]*account{}} }

// account has the writes for one job.
type account struct {
	JobWrites
	job      *job
	unitMade Moment
	quota    Moment // when it first got quota
	released Moment
	ended    Moment
	reasons  int             // writes of the reason or the message while the unit waited
	shown    map[string]bool // their reasons, each with the limit
	asked    int             // those next to a wait for a user's action
	checked  int             // writes for its admission checks: reservations, messages and returns
	nodes    int             // events that show what an autoscaler reports
	more     int             // additional writes that any job may cost
	once     map[string]bool // those of them that are allowed once
}

// allowOnce allows one more write, but only once per job and what.
func (a *account) allowOnce(what string) {
	if !a.once[what] {
		a.once[what] = true
		a.more++
	}
}

func (b *book) of(j *job) *account {
	a := b.accounts[j.uid]
	if a == nil {
		a = &account{job: j, shown: map[string]bool{}, once: map[string]bool{}}
		a.Kind, a.Namespace, a.Name, a.UID = j.now.kind.Kind, j.namespace, j.name, j.uid
		a.By = map[string]int{}
		b.accounts[j.uid] = a
		b.order = append(b.order, a)
	}
	return a
}

func (b *book) see(s *world, c *change) {
	b.follow(c)
	if !c.byProgram() || c.ofStatus() {
		return
	}
	j := s.jobFor(c)
	if j == nil {
		return // an object of no job
	}
	a := b.of(j)
	what := c.resource
	if c.subresource != "" {
		what += "/" + c.subresource
	}
	a.By[c.verb+" "+what+": "+purpose(c)]++
	switch {
	case c.lost():
		a.Failed++
		a.Unjudged = "a write has no answer"
	case !c.ok():
		a.Failed++
	case c.resource == "queueunits":
		a.OnUnit++
		if c.died && !j.exists() {
			a.allowOnce("deletion of the unit of a deleted job, if the garbage collector is slow")
		}
	case c.resource == "events":
		a.OnEvents++
		a.allowEvent(c.event)
	default:
		a.OnJob++
	}
}

func (a *account) allowEvent(e *eventFacts) {
	if e == nil {
		return
	}
	if e.kind == "Warning" {
		a.allowOnce("warning " + e.reason)
	}
	switch e.reason {
	case "ControllerDown":
		a.allowOnce("event that says what is true afterwards")
	case nodesPending:
		a.nodes++
	}
}

// jobFor finds the job that a write is for.
func (s *world) jobFor(c *change) *job {
	switch {
	case c.event != nil:
		if j := s.jobs[c.event.uid]; j != nil {
			return j
		}
		if u := s.units[c.event.uid]; u != nil {
			return s.jobOf(u)
		}
		return s.jobOf(s.unitNamed(c.event.namespace, c.event.name))
	case c.resource == "queueunits" && c.job == nil: // it was refused
		return s.jobOf(s.unitNamed(c.namespace, c.name))
	case c.resource == "queueunits":
		return c.job
	case c.job != nil && c.pod == nil:
		if root := s.rootOf(c.job); root != nil {
			return root
		}
		return c.job
	}
	if k := kindOf(c.group, c.version, c.resource); k != nil {
		return s.jobNamed(k, c.namespace, c.name)
	}
	return nil
}

// purpose describes in one or two words what a write was for.
func purpose(c *change) string {
	now, was := (*unitFacts)(nil), c.unitWas
	if c.unit != nil {
		now = c.unit.now
	}
	changed := now != nil && was != nil
	switch {
	case !c.ok():
		return "refused " + strconv.Itoa(c.code)
	case c.same:
		return "changed nothing"
	case c.event != nil:
		return c.event.kind + " " + c.event.reason
	case c.born:
		return "create"
	case c.died:
		return "delete"
	case c.released:
		return "release"
	case c.suspended:
		return "suspend"
	case changed && now.Status.Phase != was.Status.Phase:
		return "phase " + string(now.Status.Phase)
	case changed && now.evicted != was.evicted:
		return "evicted"
	case changed && now.unscheduled() != was.unscheduled():
		return "unscheduled pods"
	case changed && now.is("OverQuota") != was.is("OverQuota"):
		return "over quota"
	case changed && now.is("PodsReady") && !was.is("PodsReady"):
		return "pods ready"
	case changed && now.Status.Reason != was.Status.Reason:
		return "reason " + string(now.Status.Reason)
	case c.subresource == "status":
		return "status"
	}
	return "object"
}

// unscheduled returns what the unit shows about pods without a node, or "".
func (u *unitFacts) unscheduled() string {
	if c := u.condition("PodsScheduled"); c != nil {
		return "pods: " + c.Message
	}
	return ""
}

// asks reports whether the unit waits for a user to act.
func (u *unitFacts) asks() bool {
	switch u.Status.Reason {
	case "Inactive", "QueueStopped", "NoQuota", "QuotaNotAllowed", "InvalidQuotaTree", "ExceedsMaxQuota", "ExceedsMinQuota",
		"InvalidRequest", "KindNotQueued", "Terminating", "AdmissionCheckMissing", "AdmissionCheckRejected":
		return true
	}
	return false
}

// follow records the writes of all users that affect the budget.
func (b *book) follow(c *change) {
	j := c.job
	if j == nil || !c.ok() || c.pod != nil || !j.now.queued() {
		return
	}
	a := b.of(j)
	if c.unit != nil {
		a.followUnit(c)
		return
	}
	switch {
	case c.released && a.released.IsZero():
		a.released = c.Moment
	case c.suspended:
		a.Unjudged = "suspended again"
	}
	if was := c.jobWas; was != nil && (was.steered != j.now.steered || was.quotaName != j.now.quotaName) {
		a.Unjudged = "steered by hand"
	}
	a.ended = j.over()
}

func (a *account) followUnit(c *change) {
	now, was := c.unit.now, c.unitWas
	switch {
	case c.died:
		return
	case was == nil:
		if !a.unitMade.IsZero() {
			a.Unjudged = "more than one unit"
		}
		a.unitMade = c.Moment
		return
	case now.evicted, now.Status.Attempts > 1:
		a.Unjudged = "evicted"
	case now.active() != was.active() || now.quotaName != was.quotaName || !now.total.equal(was.total):
		a.Unjudged = "its unit's spec changed"
	}
	if now.is("PodsReady") && !was.is("PodsReady") && now.Status.Phase == was.Status.Phase && now.holds() {
		a.allowOnce("condition PodsReady that changes nothing else")
	}
	if now.unscheduled() != was.unscheduled() && now.holds() && now.Status.Phase == was.Status.Phase {
		a.more++
	}
	if now.holds() && was.holds() && now.Status.Quota != was.Status.Quota { // the quota was renamed
		a.more++
	}
	if now.is("OverQuota") != was.is("OverQuota") && now.holds() {
		a.more++
	}
	if now.holds() && now.Status.Phase != phaseReserved && a.quota.IsZero() {
		a.quota = c.Moment // a Reserved unit still waits
	}
	if now.Status.Phase == phaseReserved || was.Status.Phase == phaseReserved && now.queued() {
		a.checked++
		a.more++
		a.allowOnce("event that the job waits for its checks")
	}
	switch {
	case now.Status.Phase != was.Status.Phase:
	case now.holds():
		if now.Status.Reason != was.Status.Reason {
			a.allowOnce("reason after the release")
		}
	case now.Status.Reason != was.Status.Reason || now.Status.Message != was.Status.Message:
		a.reasons++
		_, limit, _ := strings.Cut(now.Status.Message, " of max ") // a change of the limit is reported immediately
		limit, _, _ = strings.Cut(limit, " ")
		a.shown[string(now.Status.Reason)+" "+strings.TrimSuffix(limit, ";")] = true
		if was.Status.Reason != "" && (was.asks() || now.asks()) {
			a.asked++
		}
	}
}
