package state

import (
	"time"

	"kube-queue.dev/kube-queue/test/audit/facts"
)

// State is the state of the cluster after a write.
type State struct {
	Options *facts.Options
	End     time.Time // of the log
	Jobs    map[string]*Job
	Units   map[string]*Unit
	Pods    map[string]*Pod
	Managed map[string]bool // managed namespaces
	// Doubts counts the units and pods that were not counted because of a doubt about them.
	Doubts int
	Trees  Trees
	Quotas map[string][]*QuotaObject // by namespace

	names    map[name]string          // the UID of the latest object of each name
	owners   map[string]string        // the controller of each object
	holding  map[*Unit]bool           // the units that hold quota
	admitted map[string][]*Unit       // units that were admitted, by the UID of their object
	present  map[string]map[*Pod]bool // pods that are not gone, by namespace
	leaving  map[string]time.Time     // see expect
	leader   string                   // the process that decides, by its lease
	leaders  []time.Time              // when another one began
	decider  string                   // and by its credentials
}

// name identifies an object of a time.
type name struct{ group, resource, namespace, name string }

// Job is a job, or a part of one.
type Job struct {
	Row                  *facts.Row
	UID, Namespace, Name string
	Facts                *facts.Job   // current
	Created              facts.Moment // zero if the job is older than the log
	Gone, Ended          facts.Moment
	Suspended            facts.Moment // since when it is suspended
	Missed               bool         // marked, but not held at its creation
	Units                map[string]*Unit
	Clusters             map[string]*Job // its existing RayClusters
	Pods                 []*Pod
	WasUnit              bool // a unit has represented it

	revision int64
}

func (j *Job) String() string { return j.Row.Kind + " " + j.Namespace + "/" + j.Name }

// Over returns when the job ended or was deleted.
func (j *Job) Over() facts.Moment { return j.Ended.Or(j.Gone) }

// Unit is a QueueUnit.
type Unit struct {
	UID, Namespace, Name string
	Facts                *facts.Unit // current
	Created, Gone        facts.Moment

	revision int64
	unclear  bool // a write has no answer
	admitted bool // at some time
}

// Exists reports whether there is a unit that was not deleted.
func (u *Unit) Exists() bool { return u != nil && u.Gone.IsZero() }

func (u *Unit) String() string { return "QueueUnit " + u.Namespace + "/" + u.Name }

// Pod is a pod.
type Pod struct {
	UID, Namespace, Name string
	Job                  *Job // found through all owners
	Created, Over, Gone  facts.Moment
	Requests, Limits     facts.Amounts
	Class                facts.Class

	until   time.Time // end of its grace period
	resized bool      // since it was created
	unclear bool      // the log does not show whether it still exists or counts
}

func (p *Pod) String() string { return "Pod " + p.Namespace + "/" + p.Name }

// Live reports whether the pod may still use its requests.
func (p *Pod) Live() bool { return p.Gone.IsZero() && p.Over.IsZero() }

// Change is the effect of one write.
type Change struct {
	Write *facts.Write
	// Same reports that the write did not change the object.
	Same bool

	Job    *Job
	JobWas *facts.Job // nil if the job was not known
	// Released and Suspended report a change of the job's suspend field.
	Released, Suspended bool

	Unit    *Unit
	UnitWas *facts.Unit
	// Admitted reports that the unit got quota.
	Admitted bool

	Pod   *Pod
	Event *facts.Event

	Born, Died bool
}

// Replay applies all writes in order.
func Replay(l *facts.Log, o *facts.Options, see func(*State, *Change)) *State {
	s := New(l, o)
	for _, write := range l.Writes {
		see(s, s.Apply(write))
	}
	return s
}

// New returns the state before the first write of a log.
func New(l *facts.Log, o *facts.Options) *State {
	s := &State{
		Options: o, End: l.To, Jobs: map[string]*Job{}, Units: map[string]*Unit{}, Pods: map[string]*Pod{},
		Managed: map[string]bool{}, Quotas: map[string][]*QuotaObject{},
		names: map[name]string{}, owners: map[string]string{}, holding: map[*Unit]bool{},
		admitted: map[string][]*Unit{}, present: map[string]map[*Pod]bool{}, leaving: map[string]time.Time{},
	}
	for _, write := range l.Writes {
		s.expect(write)
	}
	return s
}

// expect records which objects are removed later, and since when. A removal may have two steps. A pod
// has ended at the first, before its response. The response of the delete of a collection comes after
// the last object, and does not show that objects with finalizers are being deleted from then on. What
// others delete because of a delete has no revision, and may come before it in the order of the log.
func (s *State) expect(write *facts.Write) {
	if !write.OK() || write.Received.IsZero() || write.UID == "" {
		return
	}
	_, isPod := write.Body.(*facts.Pod)
	deletes := write.Verb == "delete" || write.Verb == "deletecollection"
	if isPod && write.Gone || deletes && write.Resource != "pods" {
		s.leaving[write.UID] = write.Received
	}
}

// Deleting reports whether the job is being deleted at the time.
func (s *State) Deleting(j *Job, at time.Time) bool {
	since, leaving := s.leaving[j.UID]
	return j.Facts.Deleting || leaving && !at.Before(since)
}

// Apply applies one write.
func (s *State) Apply(write *facts.Write) *Change {
	c := &Change{Write: write, Born: write.Creates(), Died: write.Gone}
	if !write.OK() {
		s.doubt(write)
		return c
	}
	s.followDecider(write)
	switch body := write.Body.(type) {
	case *facts.Job:
		s.applyJob(c, body)
	case *facts.Unit:
		s.applyUnit(c, body)
	case *facts.Pod:
		s.applyPod(c, body)
	case *facts.TreeObject:
		s.Trees.apply(write, body)
	case *facts.Quota:
		s.applyQuota(write, body)
	case *facts.Namespace:
		s.Managed[write.Name] = body.Managed
	case *facts.Event:
		c.Event = body
	default:
		if write.Gone {
			s.applyGone(c)
		}
	}
	s.settle(c)
	return c
}

func (s *State) applyJob(c *Change, now *facts.Job) {
	write := c.Write
	j := s.Jobs[write.UID]
	if j == nil {
		j = &Job{Row: now.Row, UID: write.UID, Namespace: write.Namespace, Name: write.Name, Units: map[string]*Unit{}, Clusters: map[string]*Job{}}
		s.Jobs[j.UID] = j
		s.owners[j.UID] = now.Owner.UID
		for _, u := range s.Units { // a unit may be older than the first write that shows its job
			if s.JobOf(u) != j {
				continue
			}
			if j.WasUnit = true; u.Exists() {
				j.Units[u.UID] = u
			}
		}
		if c.Born {
			j.Created = write.Moment()
			j.Missed = now.Marked && !now.Suspended && now.Queued() && !now.Unholdable
		}
	}
	s.names[nameOf(write)] = j.UID
	c.Job, c.JobWas = j, j.Facts
	c.Same = write.Own && write.Revision == j.revision
	j.Facts, j.revision = now, write.Revision
	if was := c.JobWas; was != nil && was.Suspended != now.Suspended {
		c.Released, c.Suspended = !now.Suspended, now.Suspended
	}
	if now.Suspended && (c.JobWas == nil || !c.JobWas.Suspended) {
		j.Suspended, j.Missed = write.Moment(), false
	}
	s.belong(j, c)
}

// belong adds a RayCluster to its job.
func (s *State) belong(j *Job, c *Change) {
	if c.Died {
		j.Gone = c.Write.Moment()
	}
	parent := s.Jobs[s.owners[j.UID]]
	switch {
	case parent == nil || j.Row.Resource != "rayclusters":
	case j.Gone.IsZero():
		parent.Clusters[j.UID] = j
	default:
		delete(parent.Clusters, j.UID)
	}
}

func (s *State) applyUnit(c *Change, now *facts.Unit) {
	write := c.Write
	u := s.Units[write.UID]
	if u == nil {
		u = &Unit{UID: write.UID, Namespace: write.Namespace, Name: write.Name}
		s.Units[u.UID] = u
		if c.Born {
			u.Created = write.Moment()
		}
	}
	s.names[nameOf(write)] = u.UID
	c.Unit, c.UnitWas = u, u.Facts
	c.Same = write.Own && write.Revision == u.revision
	u.Facts, u.revision, u.unclear = now, write.Revision, false
	if c.Died {
		u.Gone = write.Moment()
	}
	s.followUnit(c)
}

// followUnit updates whether a unit holds quota, and the units of its job.
func (s *State) followUnit(c *Change) {
	u := c.Unit
	c.Job = s.JobOf(u)
	if j := c.Job; j != nil {
		j.WasUnit = true
		if u.Exists() {
			j.Units[u.UID] = u
		} else {
			delete(j.Units, u.UID)
		}
	}
	if !u.Exists() || !u.Facts.Holds() {
		delete(s.holding, u)
		return
	}
	s.holding[u] = true
	c.Admitted = c.UnitWas != nil && !c.UnitWas.Holds()
	if owner := s.ownerOf(u); owner != "" && !u.admitted && (c.Job == nil || c.Job.Over().IsZero()) {
		u.admitted = true
		s.admitted[owner] = append(s.admitted[owner], u)
	}
}

func (s *State) applyPod(c *Change, now *facts.Pod) {
	write := c.Write
	p := s.Pods[write.UID]
	if p == nil {
		p = &Pod{UID: write.UID, Namespace: write.Namespace, Name: write.Name, Requests: now.Requests, Limits: now.Limits, Class: now.Class}
		s.Pods[p.UID] = p
		s.owners[p.UID] = now.Owner.UID
		if c.Born {
			p.Created = write.Moment()
		}
		if p.Job = s.root(s.OwnerOf(now, p.Namespace)); p.Job != nil {
			p.Job.Pods = append(p.Job.Pods, p)
		}
		if before := s.Pods[s.names[nameOf(write)]]; before != nil && before.Live() {
			s.question(&before.unclear)
		}
		s.names[nameOf(write)] = p.UID
		if s.present[p.Namespace] == nil {
			s.present[p.Namespace] = map[*Pod]bool{}
		}
		s.present[p.Namespace][p] = true
	}
	c.Pod, c.Job = p, p.Job
	p.until = now.Until
	p.resized = p.resized || write.Subresource == "resize"
	if now.Over && p.Over.IsZero() {
		p.Over = write.Moment()
	}
	if c.Died {
		s.removePod(c)
	}
}

func (s *State) removePod(c *Change) {
	c.Pod.Gone = c.Write.Moment()
	delete(s.present[c.Pod.Namespace], c.Pod)
}

// applyGone applies a delete that returned no object.
func (s *State) applyGone(c *Change) {
	uid := c.Write.UID
	if j := s.Jobs[uid]; j != nil {
		c.Job, c.JobWas = j, j.Facts
		s.belong(j, c)
	} else if u := s.Units[uid]; u != nil {
		c.Unit, c.UnitWas = u, u.Facts
		u.Gone = c.Write.Moment()
		s.followUnit(c)
	} else if p := s.Pods[uid]; p != nil {
		c.Pod, c.Job = p, p.Job
		s.removePod(c)
	}
	switch c.Write.Resource {
	case "elasticquotatrees":
		s.Trees.remove(c.Write)
	case "resourcequotas":
		s.applyQuota(c.Write, nil)
	}
}

// settle updates which jobs have really ended.
func (s *State) settle(c *Change) {
	for _, j := range []*Job{c.Job, s.RootOf(c.Job)} {
		if j == nil || j.Facts == nil {
			continue
		}
		switch ended := j.Facts.End != facts.Going && !(j.Row.HasClusters && len(j.Clusters) > 0); {
		case !ended:
			j.Ended = facts.Moment{}
		case j.Ended.IsZero():
			j.Ended = c.Write.Moment()
		}
	}
}

// doubt applies a write that failed, or has no answer.
func (s *State) doubt(write *facts.Write) {
	lost := write.Code == 0 || write.Code >= 500
	uid := s.names[nameOf(write)]
	if u := s.Units[uid]; u.Exists() && lost {
		s.question(&u.unclear)
	}
	if write.Resource != "pods" || write.Verb == "create" {
		return
	}
	if p := s.Pods[uid]; p != nil && p.Live() && (write.Code == 404 || write.Verb == "delete" && lost && write.Subresource == "") {
		s.question(&p.unclear)
	}
	if write.Verb == "deletecollection" && lost {
		for p := range s.present[write.Namespace] {
			if p.Live() {
				s.question(&p.unclear)
			}
		}
	}
}

// question marks a unit or a pod as unclear.
func (s *State) question(unclear *bool) {
	if !*unclear {
		s.Doubts++
	}
	*unclear = true
}

func nameOf(w *facts.Write) name { return name{w.Group, w.Resource, w.Namespace, w.Name} }
