package audit

import "time"

// world is the cluster as the log shows it, up to one write.
type world struct {
	options *Options
	jobs    map[string]*job // by UID, as all that follow
	units   map[string]*unit
	pods    map[string]*pod
	owners  map[string]string  // the controller of each object that was seen
	named   map[jobKey]*job    // the latest of each name
	early   map[string][]*unit // by the UID of a job that was not seen yet
	managed map[string]bool    // namespaces whose jobs are all queued
	forest  forest
	lines   lines
	claims  map[string]*claim  // by the UID of the job, or of a unit without one
	ledgers map[string]*ledger // by namespace; see ledger
	// leaving is when the removal of a pod began that is carried out in the end, by UID.
	leaving map[string]time.Time
	end     time.Time // of the log
}

type jobKey struct {
	row             *row
	namespace, name string
}

// Moment is a place in the log.
type Moment struct {
	Time     time.Time
	Revision int64
	Line     int
}

// IsZero tells whether it never came.
func (m Moment) IsZero() bool { return m.Line == 0 }

// Before tells whether m came, and came before the other; one that never came
// is later than any.
func (m Moment) Before(other Moment) bool {
	if m.IsZero() || other.IsZero() {
		return !m.IsZero()
	}
	if m.Revision != other.Revision {
		return m.Revision < other.Revision
	}
	return m.Time.Before(other.Time)
}

// cameBefore tells whether the moment came, and came before a time.
func (m Moment) cameBefore(at time.Time) bool { return !m.IsZero() && m.Time.Before(at) }

func (w *Write) moment() Moment { return Moment{w.Time, w.Revision, w.Line} }

type job struct {
	row                  *row
	uid, namespace, name string
	facts                *jobFacts // as of now
	revision             int64
	created              Moment // zero when it is older than the log
	gone                 Moment
	ended                Moment // truly: see world.settle
	suspended            Moment // since when, if it is
	heldFromStart        bool   // suspended when it was created
	missed               bool   // opted in, but was not held when it was created
	released             Moment // last by job-extensions
	units                map[string]*unit
	clusters             map[string]*job // RayClusters of its own that exist
	pods                 []*pod
	wasUnit              bool // a unit has stood for it
}

// resource is how the API names its kind.
func (j *job) resource() string { return j.row.resource }

// sized tells whether the specs of its kind say how many pods they make.
func (j *job) sized() bool { return j.row.pods != nil }

func (j *job) String() string { return j.row.kind + " " + j.namespace + "/" + j.name }

type unit struct {
	uid, namespace, name string
	facts                *unitFacts
	revision             int64
	created, gone        Moment
}

func (u *unit) String() string { return "QueueUnit " + u.namespace + "/" + u.name }

type pod struct {
	uid, namespace, name string
	job                  *job // the one that it is for, through all owners
	facts                *podFacts
	revision             int64
	created, over, gone  Moment
	requests, limits     amounts
	class                class
	resized              bool // since it was created
}

func (p *pod) String() string { return "Pod " + p.namespace + "/" + p.name }

// live tells whether the pod may still use what it asked for.
func (p *pod) live() bool { return p.gone.IsZero() && p.over.IsZero() }

// change is what one write did to the world.
type change struct {
	w *Write
	// same tells that the write left the object as it was.
	same bool

	job    *job
	jobWas *jobFacts // nil when it was not known
	// released and suspended tell of the job's suspend field.
	released, suspended bool

	unit    *unit
	unitWas *unitFacts

	pod    *pod
	podWas *podFacts

	event *eventFacts

	born, died bool

	// opened is the claim that came with the write, closed are those that went.
	opened *claim
	closed []*claim
}

func newWorld(options *Options, end time.Time) *world {
	return &world{
		options: options, end: end,
		jobs: map[string]*job{}, units: map[string]*unit{}, pods: map[string]*pod{}, owners: map[string]string{},
		named: map[jobKey]*job{}, early: map[string][]*unit{}, managed: map[string]bool{}, lines: lines{}, claims: map[string]*claim{},
		ledgers: map[string]*ledger{}, leaving: map[string]time.Time{},
	}
}

// expect notes ahead of everything which pods are removed, and since when. A removal
// may have two steps: the pod's time is over at the first, before the answer.
func (w *world) expect(write *Write) {
	if _, is := write.body.(*podFacts); is && write.OK() && write.gone && !write.Received.IsZero() {
		w.leaving[write.UID] = write.Received
	}
}

// apply takes in one write.
func (w *world) apply(write *Write) *change {
	c := &change{w: write, born: write.creates(), died: write.gone}
	if !write.OK() {
		return c
	}
	switch facts := write.body.(type) {
	case *jobFacts:
		w.applyJob(c, facts)
	case *unitFacts:
		w.applyUnit(c, facts)
	case *podFacts:
		w.applyPod(c, facts)
	case *treeFacts:
		w.forest.apply(write, facts)
	case *queueFacts:
		w.lines.apply(w.options, write, facts)
	case *quotaFacts:
		w.ledger(write.Namespace).seeQuota(write, facts)
	case *namespaceFacts:
		w.managed[write.Name] = facts.managed
	case *eventFacts:
		c.event = facts
	default:
		if write.gone {
			w.applyGone(c)
		}
	}
	w.settle(c)
	if w.options.ResourceQuota {
		w.ledger(write.Namespace).follow(w, c)
	}
	return c
}

func (w *world) applyJob(c *change, facts *jobFacts) {
	write := c.w
	j := w.jobs[write.UID]
	if j == nil {
		j = &job{row: facts.row, uid: write.UID, namespace: write.Namespace, name: write.Name, units: map[string]*unit{}, clusters: map[string]*job{}}
		w.jobs[j.uid] = j
		w.named[jobKey{j.row, j.namespace, j.name}] = j
		w.owners[j.uid] = facts.owner.UID
		for _, u := range w.early[j.uid] {
			if j.wasUnit = true; u.gone.IsZero() {
				j.units[u.uid] = u
			}
		}
		delete(w.early, j.uid)
		if c.born {
			j.created = write.moment()
			j.heldFromStart = facts.suspended
			j.missed = facts.marked && !facts.suspended && facts.queued() && !facts.unholdable
		}
	}
	c.job, c.jobWas = j, j.facts
	c.same = write.own && write.Revision == j.revision
	j.facts, j.revision = facts, write.Revision
	if was := c.jobWas; was != nil && was.suspended != facts.suspended {
		c.released, c.suspended = !facts.suspended, facts.suspended
	}
	if facts.suspended && (c.jobWas == nil || !c.jobWas.suspended) {
		j.suspended, j.missed = write.moment(), false
	}
	if c.released && write.User == w.options.Extensions {
		j.released = write.moment()
	}
	w.belong(j, c)
}

// belong counts a RayCluster among its job's.
func (w *world) belong(j *job, c *change) {
	parent := w.jobs[w.owners[j.uid]]
	if c.died {
		j.gone = c.w.moment()
	}
	if parent == nil || j.row.resource != "rayclusters" {
		return
	}
	if j.gone.IsZero() {
		parent.clusters[j.uid] = j
	} else {
		delete(parent.clusters, j.uid)
	}
}

func (w *world) applyUnit(c *change, facts *unitFacts) {
	write := c.w
	u := w.units[write.UID]
	if u == nil {
		u = &unit{uid: write.UID, namespace: write.Namespace, name: write.Name}
		w.units[u.uid] = u
		if c.born {
			u.created = write.moment()
		}
		if facts.row != nil && facts.jobUID != "" && w.jobs[facts.jobUID] == nil {
			w.early[facts.jobUID] = append(w.early[facts.jobUID], u)
		}
	}
	c.unit, c.unitWas = u, u.facts
	c.same = write.own && write.Revision == u.revision
	u.facts, u.revision = facts, write.Revision
	c.job = w.jobOf(u)
	if c.died {
		u.gone = write.moment()
	}
	if j := c.job; j != nil {
		j.wasUnit = true
		if u.gone.IsZero() {
			j.units[u.uid] = u
		} else {
			delete(j.units, u.uid)
		}
	}
}

// jobOf finds a unit's job, by its UID or, where it has none, by its name.
func (w *world) jobOf(u *unit) *job {
	f := u.facts
	if f.row == nil {
		return nil
	}
	if f.jobUID != "" {
		return w.jobs[f.jobUID]
	}
	return w.named[jobKey{f.row, u.namespace, f.jobName}]
}

func (w *world) applyPod(c *change, facts *podFacts) {
	write := c.w
	p := w.pods[write.UID]
	if p == nil {
		p = &pod{uid: write.UID, namespace: write.Namespace, name: write.Name, requests: facts.requests, limits: facts.limits, class: facts.class}
		w.pods[p.uid] = p
		w.owners[p.uid] = facts.owner.UID
		if c.born {
			p.created = write.moment()
		}
		if p.job = w.jobOfPod(p, facts); p.job != nil {
			p.job.pods = append(p.job.pods, p)
		}
	}
	c.pod, c.podWas, c.job = p, p.facts, p.job
	p.facts, p.revision = facts, write.Revision
	p.resized = p.resized || write.Subresource == "resize"
	if facts.over() && p.over.IsZero() {
		p.over = write.moment()
	}
	if c.died {
		p.gone = write.moment()
	}
}

func (w *world) jobOfPod(p *pod, facts *podFacts) *job {
	if facts.byRow != nil {
		return w.named[jobKey{facts.byRow, p.namespace, facts.labelled}]
	}
	return w.root(facts.owner.UID)
}

// ownerOf is the UID of what a pod belongs to, as it was sent.
func (w *world) ownerOf(facts *podFacts, namespace string) string {
	if facts.byRow != nil {
		if j := w.named[jobKey{facts.byRow, namespace, facts.labelled}]; j != nil {
			return j.uid
		}
	}
	return facts.owner.UID
}

// root is the uppermost job on the way from an object through its controllers.
func (w *world) root(uid string) *job {
	var top *job
	for steps := 0; uid != "" && steps < 16; steps++ {
		if j := w.jobs[uid]; j != nil {
			top = j
		} else if p := w.pods[uid]; p != nil && p.job != nil {
			return p.job
		}
		uid = w.owners[uid]
	}
	return top
}

// applyGone takes in a delete that returned no object.
func (w *world) applyGone(c *change) {
	uid := c.w.UID
	if j := w.jobs[uid]; j != nil {
		c.job, c.jobWas = j, j.facts
		w.belong(j, c)
	} else if u := w.units[uid]; u != nil {
		c.unit, c.unitWas, c.job = u, u.facts, w.jobOf(u)
		u.gone = c.w.moment()
		if c.job != nil {
			delete(c.job.units, uid)
		}
	} else if p := w.pods[uid]; p != nil {
		c.pod, c.podWas, c.job = p, p.facts, p.job
		p.gone = c.w.moment()
	} else if c.w.Resource == "elasticquotatrees" {
		w.forest.remove(c.w)
	} else if c.w.Resource == "resourcequotas" {
		w.ledger(c.w.Namespace).seeQuota(c.w, nil)
	} else if c.w.Resource == "queues" {
		w.lines.apply(w.options, c.w, nil)
	}
}

// settle draws the conclusions: which jobs have truly ended, and whose quota is
// in use.
func (w *world) settle(c *change) {
	for _, j := range []*job{c.job, w.rootOf(c.job)} {
		if j == nil || j.facts == nil {
			continue
		}
		switch {
		case !w.hasEnded(j):
			j.ended = Moment{}
		case j.ended.IsZero():
			j.ended = c.w.moment()
		}
	}
	w.claim(c)
}

func (w *world) rootOf(j *job) *job {
	if j == nil || w.owners[j.uid] == "" {
		return nil
	}
	return w.root(w.owners[j.uid])
}

// hasEnded tells by the job's own status whether it has ended.
func (w *world) hasEnded(j *job) bool {
	if j.facts.end == going {
		return false
	}
	return !j.row.clusters || len(j.clusters) == 0
}
