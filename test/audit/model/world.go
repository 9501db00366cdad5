package model

import "time"

// World is the state of the cluster after a write.
type World struct {
	Options *Options
	Jobs    map[string]*Job // by UID, as the fields below
	Units   map[string]*Unit
	Pods    map[string]*Pod
	owners  map[string]string  // the controller of each object
	named   map[jobKey]*Job    // the latest with each name
	early   map[string][]*Unit // by the UID of a job that was not seen yet
	Managed map[string]bool    // managed namespaces
	Forest  forest
	Lines   lines
	Claims  map[string]*Claim  // by the UID of the job, or of a unit without one
	ledgers map[string]*Ledger // by namespace; see Ledger
	// leaving is when the removal of an object began, by UID, for pods that were later removed and
	// for jobs that were deleted with a collection.
	leaving map[string]time.Time
	End     time.Time // of the log

	// charges are by the UID of the job, orphans by namespace. grown has those of both whose pods
	// request more than was admitted. See Charge.
	charges, orphans map[string]*Charge
	grown            map[*Charge]struct{}
	ownedBy          map[string][]*Pod // by the UID of an object that was not admitted yet
	podNames         map[podName]*Pod  // the latest with each name
	leader, decider  string            // the process that decides, by its lease and its credentials
}

type jobKey struct {
	row             *row
	namespace, name string
}

// Moment is a position in the log.
type Moment struct {
	Time     time.Time
	Revision int64
	Line     int
}

// IsZero reports whether the moment did not occur.
func (m Moment) IsZero() bool { return m.Line == 0 }

// Before reports whether m occurred before the other moment. A moment that did not occur is after
// all others.
func (m Moment) Before(other Moment) bool {
	if m.IsZero() || other.IsZero() {
		return !m.IsZero()
	}
	if m.Revision != other.Revision {
		return m.Revision < other.Revision
	}
	return m.Time.Before(other.Time)
}

// CameBefore reports whether the moment occurred before a time.
func (m Moment) CameBefore(at time.Time) bool { return !m.IsZero() && m.Time.Before(at) }

func (w *Write) Moment() Moment { return Moment{w.Time, w.Revision, w.Line} }

type Job struct {
	row                  *row
	UID, Namespace, name string
	Facts                *jobFacts // current
	revision             int64
	Created              Moment // zero if the job is older than the log
	Gone                 Moment
	Ended                Moment // see World.settle
	Suspended            Moment // since when it is suspended
	heldFromStart        bool   // suspended when it was created
	Missed               bool   // marked, but not held at its creation
	released             Moment // last release by job-extensions
	Units                map[string]*Unit
	Clusters             map[string]*Job // its existing RayClusters
	Pods                 []*Pod
	WasUnit              bool // a unit has represented it
}

// Resource returns the resource name of its kind.
func (j *Job) Resource() string { return j.row.resource }

// Sized reports whether the specs of its kind determine the number of pods.
func (j *Job) Sized() bool { return j.row.pods != nil }

func (j *Job) String() string { return j.row.kind + " " + j.Namespace + "/" + j.name }

type Unit struct {
	UID, Namespace, Name string
	Facts                *UnitFacts
	revision             int64
	created, Gone        Moment
}

// Exists reports whether there is a unit that was not deleted.
func (u *Unit) Exists() bool { return u != nil && u.Gone.IsZero() }

func (u *Unit) String() string { return "QueueUnit " + u.Namespace + "/" + u.Name }

type Pod struct {
	UID, Namespace, Name string
	job                  *Job // found through all owners
	facts                *podFacts
	revision             int64
	Created, Over, Gone  Moment
	Requests, Limits     Amounts
	Class                class
	resized              bool // since it was created
	ownerFacts                // current
	// unclear: the log does not show whether it still exists.
	unclear bool
	charge  *Charge
	charged bool // at some time
}

func (p *Pod) String() string { return "Pod " + p.Namespace + "/" + p.Name }

// Live reports whether the pod may still use its requests.
func (p *Pod) Live() bool { return p.Gone.IsZero() && p.Over.IsZero() }

// Change is the effect of one write on the world.
type Change struct {
	Write *Write
	// Same reports that the write did not change the object.
	Same bool

	Job    *Job
	JobWas *jobFacts // nil if the job was not known
	// Released and suspended report a change of the job's suspend field.
	Released, suspended bool

	Unit    *Unit
	UnitWas *UnitFacts

	Pod    *Pod
	podWas *podFacts

	Event *eventFacts

	Born, Died bool

	// Opened and closed are the claims that the write opened and closed.
	Opened *Claim
	Closed []*Claim
}

func NewWorld(options *Options, end time.Time) *World {
	return &World{
		Options: options, End: end,
		Jobs: map[string]*Job{}, Units: map[string]*Unit{}, Pods: map[string]*Pod{}, owners: map[string]string{},
		named: map[jobKey]*Job{}, early: map[string][]*Unit{}, Managed: map[string]bool{}, Lines: lines{}, Claims: map[string]*Claim{},
		ledgers: map[string]*Ledger{}, leaving: map[string]time.Time{},
		charges: map[string]*Charge{}, orphans: map[string]*Charge{}, grown: map[*Charge]struct{}{},
		ownedBy: map[string][]*Pod{}, podNames: map[podName]*Pod{},
	}
}

// expect records before the replay which objects are removed, and since when. A removal may have
// two steps. A pod has ended at the first, before its response. The response of the delete of a
// collection comes after the last object, and does not show that objects with finalizers are being
// deleted from then on. What others delete because of a delete has no revision, and may come before it
// in the order of the log.
func (w *World) expect(write *Write) {
	if !write.OK() || write.Received.IsZero() || write.UID == "" {
		return
	}
	_, isPod := write.Body.(*podFacts)
	deletes := write.Verb == "delete" || write.Verb == "deletecollection"
	if isPod && write.gone || deletes && write.Resource != "pods" {
		w.leaving[write.UID] = write.Received
	}
}

// Deleting reports whether the job is being deleted at the time.
func (w *World) Deleting(j *Job, at time.Time) bool {
	since, leaving := w.leaving[j.UID]
	return j.Facts.Deleting || leaving && !at.Before(since)
}

// Apply applies one write.
func (w *World) Apply(write *Write) *Change {
	c := &Change{Write: write, Born: write.creates(), Died: write.gone}
	if !write.OK() {
		w.followUnclear(write)
		return c
	}
	w.followDecider(write)
	switch facts := write.Body.(type) {
	case *jobFacts:
		w.applyJob(c, facts)
	case *UnitFacts:
		w.applyUnit(c, facts)
	case *podFacts:
		w.applyPod(c, facts)
	case *ownerFacts:
		w.applyOwners(write, facts)
	case *treeFacts:
		w.Forest.apply(write, facts)
	case *queueFacts:
		w.Lines.apply(w.Options, write, facts)
	case *QuotaFacts:
		w.Ledger(write.Namespace).seeQuota(write, facts)
	case *namespaceFacts:
		w.Managed[write.Name] = facts.managed
	case *eventFacts:
		c.Event = facts
	default:
		if write.gone {
			w.applyGone(c)
		}
	}
	w.settle(c)
	if w.Options.ResourceQuota {
		w.Ledger(write.Namespace).follow(w, c)
	}
	return c
}

func (w *World) applyJob(c *Change, facts *jobFacts) {
	write := c.Write
	j := w.Jobs[write.UID]
	if j == nil {
		j = &Job{row: facts.row, UID: write.UID, Namespace: write.Namespace, name: write.Name, Units: map[string]*Unit{}, Clusters: map[string]*Job{}}
		w.Jobs[j.UID] = j
		w.named[jobKey{j.row, j.Namespace, j.name}] = j
		w.owners[j.UID] = facts.owner.UID
		for _, u := range w.early[j.UID] {
			if j.WasUnit = true; u.Gone.IsZero() {
				j.Units[u.UID] = u
			}
		}
		delete(w.early, j.UID)
		if c.Born {
			j.Created = write.Moment()
			j.heldFromStart = facts.Suspended
			j.Missed = facts.Marked && !facts.Suspended && facts.Queued() && !facts.Unholdable
		}
	}
	c.Job, c.JobWas = j, j.Facts
	c.Same = write.own && write.Revision == j.revision
	j.Facts, j.revision = facts, write.Revision
	if was := c.JobWas; was != nil && was.Suspended != facts.Suspended {
		c.Released, c.suspended = !facts.Suspended, facts.Suspended
	}
	if facts.Suspended && (c.JobWas == nil || !c.JobWas.Suspended) {
		j.Suspended, j.Missed = write.Moment(), false
	}
	if c.Released && write.User == w.Options.Extensions {
		j.released = write.Moment()
	}
	w.belong(j, c)
}

// belong adds a RayCluster to its job.
func (w *World) belong(j *Job, c *Change) {
	parent := w.Jobs[w.owners[j.UID]]
	if c.Died {
		j.Gone = c.Write.Moment()
	}
	if parent == nil || j.row.resource != "rayclusters" {
		return
	}
	if j.Gone.IsZero() {
		parent.Clusters[j.UID] = j
	} else {
		delete(parent.Clusters, j.UID)
	}
}

func (w *World) applyUnit(c *Change, facts *UnitFacts) {
	write := c.Write
	u := w.Units[write.UID]
	if u == nil {
		u = &Unit{UID: write.UID, Namespace: write.Namespace, Name: write.Name}
		w.Units[u.UID] = u
		if c.Born {
			u.created = write.Moment()
		}
		if facts.Row != nil && facts.jobUID != "" && w.Jobs[facts.jobUID] == nil {
			w.early[facts.jobUID] = append(w.early[facts.jobUID], u)
		}
	}
	c.Unit, c.UnitWas = u, u.Facts
	c.Same = write.own && write.Revision == u.revision
	u.Facts, u.revision = facts, write.Revision
	c.Job = w.JobOf(u)
	if c.Died {
		u.Gone = write.Moment()
	}
	if j := c.Job; j != nil {
		j.WasUnit = true
		if u.Gone.IsZero() {
			j.Units[u.UID] = u
		} else {
			delete(j.Units, u.UID)
		}
	}
}

// JobOf returns a unit's job, found by UID or, without a UID, by name.
func (w *World) JobOf(u *Unit) *Job {
	f := u.Facts
	if f.Row == nil {
		return nil
	}
	if f.jobUID != "" {
		return w.Jobs[f.jobUID]
	}
	return w.named[jobKey{f.Row, u.Namespace, f.jobName}]
}

func (w *World) applyPod(c *Change, facts *podFacts) {
	write := c.Write
	p := w.Pods[write.UID]
	added := p == nil
	if added {
		p = &Pod{UID: write.UID, Namespace: write.Namespace, Name: write.Name, Requests: facts.Requests, Limits: facts.Limits, Class: facts.Class}
		w.Pods[p.UID] = p
		w.owners[p.UID] = facts.owner.UID
		if c.Born {
			p.Created = write.Moment()
		}
		if p.job = w.jobOfPod(p, facts); p.job != nil {
			p.job.Pods = append(p.job.Pods, p)
		}
		name := podName{p.Namespace, p.Name}
		if before := w.podNames[name]; before != nil {
			w.unclear(before)
		}
		w.podNames[name] = p
	}
	c.Pod, c.podWas, c.Job = p, p.facts, p.job
	p.facts, p.revision = facts, write.Revision
	p.resized = p.resized || write.Subresource == "resize"
	if facts.over() && p.Over.IsZero() {
		p.Over = write.Moment()
	}
	if c.Died {
		p.Gone = write.Moment()
	}
	p.ownerFacts = facts.ownerFacts
	w.followPod(p, added)
}

// applyGone applies a delete that returned no object.
func (w *World) applyGone(c *Change) {
	uid := c.Write.UID
	if j := w.Jobs[uid]; j != nil {
		c.Job, c.JobWas = j, j.Facts
		w.belong(j, c)
	} else if u := w.Units[uid]; u != nil {
		c.Unit, c.UnitWas, c.Job = u, u.Facts, w.JobOf(u)
		u.Gone = c.Write.Moment()
		if c.Job != nil {
			delete(c.Job.Units, uid)
		}
	} else if p := w.Pods[uid]; p != nil {
		c.Pod, c.podWas, c.Job = p, p.facts, p.job
		p.Gone = c.Write.Moment()
		w.followPod(p, false)
	} else if c.Write.Resource == "elasticquotatrees" {
		w.Forest.remove(c.Write)
	} else if c.Write.Resource == "resourcequotas" {
		w.Ledger(c.Write.Namespace).seeQuota(c.Write, nil)
	} else if c.Write.Resource == "queues" {
		w.Lines.apply(w.Options, c.Write, nil)
	}
}

// settle updates which jobs have really ended, and the claims.
func (w *World) settle(c *Change) {
	for _, j := range []*Job{c.Job, w.RootOf(c.Job)} {
		if j == nil || j.Facts == nil {
			continue
		}
		switch {
		case !w.hasEnded(j):
			j.Ended = Moment{}
		case j.Ended.IsZero():
			j.Ended = c.Write.Moment()
		}
	}
	w.claim(c)
}

// hasEnded reports whether the job has ended, by its status.
func (w *World) hasEnded(j *Job) bool {
	if j.Facts.End == Going {
		return false
	}
	return !j.row.clusters || len(j.Clusters) == 0
}
