package audit

import "time"

// world is the state of the cluster after a write: the last version of each object.
//
// A unit holds quota in the phases Reserved, Dequeued and Running. An admission is a write by
// which a unit gets into one of them.
//
// A write without a response may have been stored. Until the next write of its job or unit, the object is unclear: no
// judgment depends on it, or on what changed between the writes before and after.
//
// A unit that is unclear, or whose job has ended or is gone, holds nothing. A pod no longer counts after a delete
// without a response or without a grace period, after a 404, or when another pod has its name. It does not count
// either if its unit is gone and a new process decides that never saw the unit.
type world struct {
	settings
	end     time.Time // of the log
	jobs    map[string]*job
	units   map[string]*unit
	pods    map[string]*pod
	managed map[string]bool // managed namespaces
	// doubts counts how often a job, a unit or a pod became unclear.
	doubts int
	trees  trees
	quotas map[string][]*quota // by namespace

	names    map[objectName]string    // the UID of the latest object of each name
	owners   map[string]string        // the controller of each object
	holding  map[*unit]bool           // the units that hold quota
	admitted map[string][]*unit       // units that were admitted, by the UID of their object
	present  map[string]map[*pod]bool // pods that are not gone, by namespace
	leaving  map[string]time.Time     // see expect
	leader   string                   // the process that decides, by its lease
	leaders  []time.Time              // when each other process began
	decider  string                   // the same process, by its credentials
}

// object is what the log shows of the life of an object.
type object struct {
	kind, uid, namespace, name string
	created                    Moment // zero if the object is older than the log
	gone                       Moment
	revision                   int64
	unclear                    bool // the log does not show whether it exists or counts
}

func (o *object) String() string { return o.kind + " " + o.namespace + "/" + o.name }

// exists reports whether the object was not deleted.
func (o *object) exists() bool { return o.gone.IsZero() }

// job is a job, or a part of one.
type job struct {
	object
	now       *jobFacts
	ended     Moment
	suspended Moment // when it was suspended
	missed    bool   // marked, but not held at its creation
	units     map[string]*unit
	clusters  map[string]*job // its existing RayClusters
	pods      []*pod
	wasUnit   bool // a unit has represented it
}

// over returns when the job ended or was deleted.
func (j *job) over() Moment { return j.ended.or(j.gone) }

// unit is a QueueUnit.
type unit struct {
	object
	now      *unitFacts
	admitted bool // at some time
}

// pod is a pod with its original requests.
type pod struct {
	object
	podGroup
	job     *job // found through all owners
	over    Moment
	until   time.Time // end of its grace period
	resized bool      // since it was created
	gated   bool      // it waits at a scheduling gate
}

// live reports whether the pod may still use its requests.
func (p *pod) live() bool { return p.exists() && p.over.IsZero() }

// change is the effect of one write.
type change struct {
	*write
	// same reports that the write did not change the object.
	same bool

	job    *job
	jobWas *jobFacts // nil if the job was unknown or unclear
	// released and suspended report a change of the job's suspend field.
	released, suspended bool

	unit    *unit
	unitWas *unitFacts // nil if the unit was unknown or unclear
	// admitted reports that the unit got quota.
	admitted bool

	pod   *pod
	event *eventFacts

	born, died bool
}

// replay applies all writes in order.
func (l *Log) replay(o settings, see func(*world, *change)) *world {
	s := &world{
		settings: o, end: l.To, jobs: map[string]*job{}, units: map[string]*unit{}, pods: map[string]*pod{},
		managed: map[string]bool{}, quotas: map[string][]*quota{},
		names: map[objectName]string{}, owners: map[string]string{}, holding: map[*unit]bool{},
		admitted: map[string][]*unit{}, present: map[string]map[*pod]bool{}, leaving: map[string]time.Time{},
	}
	for _, w := range l.writes {
		s.expect(w)
	}
	for _, w := range l.writes {
		see(s, s.apply(w))
	}
	return s
}

// expect records which objects are removed later, and from when on. A removal may have two steps: a pod has ended at
// the first, before the response. The response to the delete of a collection comes after the last object, and does
// not show that objects with finalizers are being deleted. Deletions that follow from another delete have no
// revision, and may precede it in the order of the log.
func (s *world) expect(w *write) {
	if !w.ok() || w.received.IsZero() || w.uid == "" {
		return
	}
	_, isPod := w.body.(*podFacts)
	deletes := w.verb == "delete" || w.verb == "deletecollection"
	if isPod && w.gone || deletes && w.resource != "pods" {
		s.leaving[w.uid] = w.received
	}
}

// deleting reports whether the job is being deleted at the time.
func (s *world) deleting(j *job, at time.Time) bool {
	since, leaving := s.leaving[j.uid]
	return j.now.deleting || leaving && !at.Before(since)
}

// apply applies one write.
func (s *world) apply(w *write) *change {
	c := &change{write: w, born: w.creates(), died: w.gone}
	if !w.ok() {
		s.doubt(w)
		return c
	}
	s.followDecider(w)
	switch body := w.body.(type) {
	case *jobFacts:
		s.applyJob(c, body)
	case *unitFacts:
		s.applyUnit(c, body)
	case *podFacts:
		s.applyPod(c, body)
	case *treeFacts:
		s.trees.apply(w, body)
	case *quotaFacts:
		s.applyQuota(w, body)
	case *namespaceFacts:
		s.managed[w.name] = body.managed
	case *eventFacts:
		c.event = body
	default:
		if w.gone {
			s.applyGone(c)
		} else if p := s.pods[w.uid]; p != nil && w.forced {
			s.question(&p.object)
		}
	}
	s.settle(c)
	return c
}

// objectOf returns the object that a write shows for the first time.
func (c *change) objectOf(kind string) object {
	o := object{kind: kind, uid: c.uid, namespace: c.namespace, name: c.name}
	if c.born {
		o.created = c.Moment
	}
	return o
}

// follow updates the object with its version after a write.
func (o *object) follow(c *change) {
	c.same = c.own && c.Revision == o.revision
	o.revision = c.Revision
	if c.died {
		o.gone = c.Moment
	}
}

func (s *world) applyJob(c *change, now *jobFacts) {
	j := s.jobs[c.uid]
	if j == nil {
		j = &job{object: c.objectOf(now.kind.Kind), units: map[string]*unit{}, clusters: map[string]*job{}, now: now}
		s.jobs[j.uid], s.owners[j.uid] = j, string(now.owner.UID)
		for _, u := range s.units { // a unit may be older than the first write that shows its job
			if s.jobOf(u) != j {
				continue
			}
			if j.wasUnit = true; u.exists() {
				j.units[u.uid] = u
			}
		}
		j.missed = c.born && now.marked && !now.suspended && now.queued() && !now.unholdable
	} else if !j.unclear {
		c.jobWas = j.now
	}
	j.unclear = false
	j.follow(c)
	s.names[c.object()] = j.uid
	c.job, j.now = j, now
	if was := c.jobWas; was != nil && was.suspended != now.suspended {
		c.released, c.suspended = !now.suspended, now.suspended
	}
	if now.suspended && (c.jobWas == nil || !c.jobWas.suspended) {
		j.suspended, j.missed = c.Moment, false
	}
	parent := s.jobs[s.owners[j.uid]]
	switch {
	case parent == nil || now.kind.Resource != "rayclusters":
	case j.exists():
		parent.clusters[j.uid] = j
	default:
		delete(parent.clusters, j.uid)
	}
}

func (s *world) applyUnit(c *change, now *unitFacts) {
	u := s.units[c.uid]
	if u == nil {
		u = &unit{object: c.objectOf("QueueUnit")}
		s.units[u.uid] = u
	}
	u.follow(c)
	s.names[c.object()] = u.uid
	if c.unit = u; !u.unclear {
		c.unitWas = u.now
	}
	u.now, u.unclear = now, false
	c.job = s.jobOf(u)
	if j := c.job; j != nil {
		j.wasUnit = true
		if u.exists() {
			j.units[u.uid] = u
		} else {
			delete(j.units, u.uid)
		}
	}
	if !u.exists() || !now.holds() {
		delete(s.holding, u)
		return
	}
	s.holding[u] = true
	c.admitted = c.unitWas != nil && !c.unitWas.holds()
	if owner := s.ownerOf(u); owner != "" && !u.admitted && (c.job == nil || c.job.over().IsZero()) {
		u.admitted = true
		s.admitted[owner] = append(s.admitted[owner], u)
	}
}

func (s *world) applyPod(c *change, now *podFacts) {
	p := s.pods[c.uid]
	if p == nil {
		p = &pod{object: c.objectOf("Pod"), podGroup: now.podGroup}
		s.pods[p.uid], s.owners[p.uid] = p, string(now.owner.UID)
		if p.job = s.root(s.ownerOfPod(now, p.namespace)); p.job != nil {
			p.job.pods = append(p.job.pods, p)
		}
		if before := s.pods[s.names[c.object()]]; before != nil && before.live() {
			s.question(&before.object)
		}
		s.names[c.object()] = p.uid
		if s.present[p.namespace] == nil {
			s.present[p.namespace] = map[*pod]bool{}
		}
		s.present[p.namespace][p] = true
	}
	p.follow(c)
	c.pod, c.job = p, p.job
	p.until, p.gated = now.until, now.gated
	p.resized = p.resized || c.subresource == "resize"
	if now.over && p.over.IsZero() {
		p.over, p.ended = c.Moment, true
	}
	if c.died {
		delete(s.present[p.namespace], p)
	}
}

// applyGone applies a delete that returned no object.
func (s *world) applyGone(c *change) {
	if j := s.jobs[c.uid]; j != nil {
		s.applyJob(c, j.now)
	} else if u := s.units[c.uid]; u != nil {
		s.applyUnit(c, u.now)
	} else if p := s.pods[c.uid]; p != nil {
		c.pod, c.job, p.gone = p, p.job, c.Moment
		delete(s.present[p.namespace], p)
	}
	switch c.resource {
	case "elasticquotatrees":
		s.trees.apply(c.write, nil)
	case "resourcequotas":
		s.applyQuota(c.write, nil)
	}
}

// settle updates which jobs have really ended.
func (s *world) settle(c *change) {
	for _, j := range s.withRoot(c.job) {
		switch ended := j.now.end != Going && !(j.now.kind.HasClusters && len(j.clusters) > 0); {
		case !ended:
			j.ended = Moment{}
		case j.ended.IsZero():
			j.ended = c.Moment
		}
	}
}

// doubt applies a write that failed or has no response.
func (s *world) doubt(w *write) {
	lost := w.lost()
	uid := s.names[w.object()]
	if j := s.jobs[uid]; j != nil && j.exists() && lost {
		s.question(&j.object)
	}
	if u := s.units[uid]; u != nil && u.exists() && lost {
		s.question(&u.object)
	}
	if w.resource != "pods" || w.verb == "create" {
		return
	}
	if p := s.pods[uid]; p != nil && p.live() && (w.code == 404 || w.verb == "delete" && lost && w.subresource == "") {
		s.question(&p.object)
	}
	if w.verb == "deletecollection" && lost {
		for p := range s.present[w.namespace] {
			if p.live() {
				s.question(&p.object)
			}
		}
	}
}

// question marks a job, a unit or a pod as unclear.
func (s *world) question(o *object) {
	if !o.unclear {
		s.doubts++
	}
	o.unclear = true
}
