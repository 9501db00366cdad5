package forecast

import (
	"cmp"
	"slices"
	"time"

	"kube-queue.dev/kube-queue/pkg/resources"
)

const (
	// FirstOverrun is the overrun before a job has ended. Until Fewest jobs have ended, it also multiplies the observed
	// overrun.
	FirstOverrun = 5
	// judged is the number of jobs after which the overrun and the usual requests are computed again.
	judged = 20
	// tolerance is the factor by which they must be off before they change, because each change reorders the queue.
	tolerance = 1.25
	// mostAveraged is the approximate number of jobs in the mean of the usual requests.
	mostAveraged = 1000
)

func isOff(now, was float64) bool { return now > was*tolerance || now < was/tolerance }

// Learned is what the past jobs of a queue tell about waiting ones: the overrun of each namespace, and what jobs
// usually request. The zero value knows no jobs.
type Learned struct {
	overruns map[string]*overrun
	requests []usual
}

// overrun is how many times longer than declared the jobs of a namespace usually run. It makes the declared times of
// different owners comparable: owners gain nothing if they declare too little.
type overrun struct {
	ratios ring
	ended  int
	factor float64
	// raises is whether an owner has raised or removed the limit of a running job.
	raises bool
}

// usual is the mean request for a resource, among the jobs that request it.
type usual struct {
	id   resources.ID
	jobs int
	mean float64
	// known is the mean in use; 0 if there is none yet.
	known float64
}

func (l *Learned) overrun(namespace string) *overrun {
	o := l.overruns[namespace]
	if o == nil {
		if l.overruns == nil || len(l.overruns) >= MostQueues { // more than a cluster has, so most of them are gone
			l.overruns = map[string]*overrun{}
		}
		o = &overrun{ratios: ring{most: mostRemembered}, factor: FirstOverrun}
		l.overruns[namespace] = o
	}
	return o
}

// Raised records that an owner in the namespace has raised or removed the limit of a running job. It reports whether
// that is new.
func (l *Learned) Raised(namespace string) (changed bool) {
	o := l.overrun(namespace)
	changed, o.raises = !o.raises, true
	return changed
}

// Raises reports whether the limits of the namespace are like expected times, because owners raise them.
func (l *Learned) Raises(namespace string) bool {
	o := l.overruns[namespace]
	return o != nil && o.raises
}

// Overran records how long a job of the namespace ran. It reports whether the overrun has changed.
func (l *Learned) Overran(namespace string, expected, ran time.Duration) (changed bool) {
	o := l.overrun(namespace)
	o.ratios.add(ran.Seconds() / expected.Seconds())
	if o.ended++; o.ended > judged && o.ended%judged != 0 {
		return false
	}
	sorted := o.ratios.inOrder()
	now := max(sorted[(9*len(sorted)+9)/10-1], 1) // the 90th percentile; cautious jobs must not excuse others
	if o.ended < Fewest {
		now *= FirstOverrun // otherwise, an owner who lied once could rank ahead of honest new owners
	}
	if !isOff(now, o.factor) {
		return false
	}
	o.factor = now
	return true
}

// Overrun returns the factor for the times that are declared in the namespace, at least 1.
func (l *Learned) Overrun(namespace string) float64 {
	if o := l.overruns[namespace]; o != nil {
		return o.factor
	}
	return FirstOverrun
}

// Requested records what a job requests. It reports whether Size has changed.
func (l *Learned) Requested(requests resources.Vector) (changed bool) {
	for _, a := range requests {
		at, found := slices.BinarySearchFunc(l.requests, a.ID, func(u usual, id resources.ID) int { return cmp.Compare(u.id, id) })
		if !found {
			l.requests = slices.Insert(l.requests, at, usual{id: a.ID})
		}
		u := &l.requests[at]
		u.jobs++
		u.mean += (float64(a.Value) - u.mean) / float64(min(u.jobs, mostAveraged))
		if u.jobs%judged == 0 && isOff(u.mean, u.known) {
			u.known, changed = u.mean, true
		}
	}
	return changed
}

// Size returns the largest ratio of a job's request to the usual request, among all resources. Resources that all jobs
// request equally do not count. It is 1 if nothing is known.
func (l *Learned) Size(requests resources.Vector) float64 {
	size := 0.0
	for _, a := range requests {
		at, found := slices.BinarySearchFunc(l.requests, a.ID, func(u usual, id resources.ID) int { return cmp.Compare(u.id, id) })
		if !found || l.requests[at].known == 0 {
			continue
		}
		if times := float64(a.Value) / l.requests[at].known; times != 1 {
			size = max(size, times)
		}
	}
	return cmp.Or(size, 1)
}

// Forget drops the usual requests of resources that are not in the set, because their IDs can be reassigned.
func (l *Learned) Forget(used resources.IDs) {
	l.requests = slices.DeleteFunc(l.requests, func(u usual) bool { return !used.Has(u.id) })
}

// Clone returns a copy that answers the same but learns nothing.
func (l *Learned) Clone() *Learned {
	c := &Learned{overruns: make(map[string]*overrun, len(l.overruns)), requests: slices.Clone(l.requests)}
	for namespace, o := range l.overruns {
		c.overruns[namespace] = &overrun{factor: o.factor, raises: o.raises}
	}
	return c
}
