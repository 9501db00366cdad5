package audit

import (
	"cmp"
	"fmt"
	"slices"
)

// Life is the history of one job. A moment that did not occur is zero.
type Life struct {
	Kind, Namespace, Name, UID string
	// Unit is the name of its QueueUnit.
	Unit string

	Created Moment
	// Held is when the job was first suspended, usually at its creation.
	Held Moment
	// Dequeued and Released have one moment for each attempt.
	Dequeued, Released []Moment
	FirstPod           Moment
	// Runs are when the job began to run, by its status.
	Runs  []Moment
	Ended Moment
	// Outcome is Succeeded or Failed after the job has ended.
	Outcome string
	Deleted Moment
	// States are the states that kubectl showed, in order.
	States []string
	// Pods are the names of its pods.
	Pods []string

	running bool
}

// Saw reports whether kubectl showed the job in a state.
func (l Life) Saw(state string) bool {
	return slices.Contains(l.States, state)
}

func (l Life) String() string { return l.Kind + " " + l.Namespace + "/" + l.Name }

// Lives returns all jobs that no other job controls, in order of creation.
func (l *Log) Lives() []Life {
	h := &historian{lives: map[*job]*Life{}}
	st := l.replay(settings{}, h.see)
	var out []Life
	for _, j := range st.jobs {
		if life := h.lives[j]; life != nil {
			for _, p := range j.pods {
				life.Pods = append(life.Pods, p.name)
			}
			out = append(out, *life)
		}
	}
	slices.SortFunc(out, func(a, b Life) int {
		return cmp.Or(cmp.Compare(a.Created.Revision, b.Created.Revision), cmp.Compare(a.UID, b.UID))
	})
	return out
}

// Life returns the latest job with this name.
func (l *Log) Life(kind, namespace, name string) (Life, error) {
	for _, life := range slices.Backward(l.Lives()) {
		if life.Kind == kind && life.Namespace == namespace && life.Name == name {
			return life, nil
		}
	}
	return Life{}, fmt.Errorf("the log shows no %s %s/%s", kind, namespace, name)
}

// historian collects the lives.
type historian struct{ lives map[*job]*Life }

func (h *historian) see(s *world, c *change) {
	j := c.job
	if j == nil || s.rootOf(j) != nil || !c.ok() {
		return
	}
	life := h.lives[j]
	if life == nil {
		life = &Life{Kind: j.now.kind.Kind, Namespace: j.namespace, Name: j.name, UID: j.uid, Created: j.created}
		h.lives[j] = life
	}
	now := c.Moment
	switch {
	case c.unit != nil:
		life.seeUnit(c, now)
	case c.pod != nil:
		if c.born && life.FirstPod.IsZero() {
			life.FirstPod = now
		}
	default:
		life.seeJob(j, c, now)
	}
	life.Ended, life.Deleted = j.ended, j.gone
	if !life.Ended.IsZero() {
		life.Outcome = string(j.now.end)
	}
}

func (l *Life) seeUnit(c *change, now Moment) {
	u := c.unit
	l.Unit = cmp.Or(l.Unit, u.name)
	if u.exists() && u.now.phase(phaseDequeued) && (c.unitWas == nil || !c.unitWas.phase(phaseDequeued)) {
		l.Dequeued = append(l.Dequeued, now)
	}
}

func (l *Life) seeJob(j *job, c *change, now Moment) {
	if l.Held.IsZero() {
		l.Held = j.suspended
	}
	if c.released {
		l.Released = append(l.Released, now)
	}
	runs := j.now.running && j.now.end == Going && j.exists() && !j.now.suspended
	if runs && !l.running {
		l.Runs = append(l.Runs, now)
	}
	l.running = runs
	if n := len(l.States); j.now.state != "" && (n == 0 || l.States[n-1] != j.now.state) {
		l.States = append(l.States, j.now.state)
	}
}
