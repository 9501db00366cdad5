package audit

import (
	"math/big"
	"slices"
	"time"
)

// admission is as whom the API server counts what it lets through; the quota's
// controller counts all that is there.
const admission = "system:apiserver"

// refusedPod looks at the pods with which admitted jobs start. It judges at the end,
// when it is known what was there at each refusal.
type refusedPod struct {
	made    map[*claim][]*pod // in each claim
	late    map[string][]*pod // by namespace, those that no admission had promised room
	refused []refusedStart
	nobodys int
	// twice are writes by which quotas count a pod that is not there, by namespace, and
	// counted when each quota was counted anew, by namespace and name.
	twice   map[string][]*Write
	counted map[string][]time.Time
}

type refusedStart struct {
	write  *Write
	held   *claim
	size   int64
	ledger *ledger
}

func newRefusedPod() inspector {
	return &refusedPod{made: map[*claim][]*pod{}, late: map[string][]*pod{}, twice: map[string][]*Write{}, counted: map[string][]time.Time{}}
}

func (r *refusedPod) see(w *world, c *change, f *findings) {
	l := w.ledger(c.w.Namespace)
	switch {
	case c.pod != nil && c.born:
		h := l.holderOf(w, c.pod.uid)
		if h == nil || h.facts == nil || int64(len(r.made[h.held])) >= h.facts.size() {
			r.late[c.pod.namespace] = append(r.late[c.pod.namespace], c.pod)
		} else {
			f.Judged++
		}
		if h != nil {
			r.made[h.held] = append(r.made[h.held], c.pod)
		}
	case c.w.twice != nil:
		r.twice[c.w.Namespace] = append(r.twice[c.w.Namespace], c.w)
	case c.w.Resource == "resourcequotas" && c.w.Subresource == "status" && c.w.User != admission && c.w.OK():
		quota := c.w.Namespace + "/" + c.w.Name
		r.counted[quota] = append(r.counted[quota], c.w.Time)
	case c.w.refusal != nil:
		var h *holder
		if sent := c.w.refusal.pod; sent != nil {
			h = l.holderOf(w, w.ownerOf(sent, c.w.Namespace))
		}
		if h == nil || h.facts == nil {
			r.nobodys++
			return
		}
		r.refused = append(r.refused, refusedStart{c.w, h.held, h.facts.size(), l})
	}
}

func (r *refusedPod) finish(w *world, f *findings) {
	again, later, changed, taken := 0, 0, 0, 0
	for _, s := range r.refused {
		switch {
		case r.isThere(s):
			again++
		case int64(r.before(s))+1 > s.size:
			later++
		case s.changed(*w.options.TreeLag):
			changed++
		case r.taken(s, *w.options.PodLag):
			taken++
		default:
			f.Judged++
			f.fail("refused-pod", s.write.moment(), s.held, "pod %s, one of the %d that it starts with, was refused %s after the admission: %s", s.write.refusal.name,
				s.size, s.write.Time.Sub(s.held.opened.Time).Round(time.Millisecond), s.write.refusal.message)
		}
	}
	for _, n := range []struct {
		count int
		what  string
	}{
		{r.nobodys, "refused pods belong to no admitted job"},
		{again, "refused pods are there by that name already: the API server asks the quota first"},
		{later, "refused pods are more than their jobs start with, or take the place of others"},
		{changed, "pods were refused by a quota that changed after the admission"},
		{taken, "pods were refused since pods of others, those of jobs that grew, or some that were created twice, came after the admission and took the room"},
	} {
		if n.count > 0 {
			f.NotJudged += n.count
			f.note("%d %s", n.count, n.what)
		}
	}
}

// isThere tells whether the claim had a pod of that name when it was refused: an
// operator that has not seen its own pod yet makes it once more.
func (r *refusedPod) isThere(s refusedStart) bool {
	return slices.ContainsFunc(r.made[s.held], func(p *pod) bool {
		return p.name == s.write.refusal.name && !p.created.Time.After(s.write.Time) && !p.gone.cameBefore(s.write.Received)
	})
}

// before counts the pods that the claim had made when the refusal was answered.
func (r *refusedPod) before(s refusedStart) int {
	n := 0
	for _, p := range r.made[s.held] {
		if !p.created.Time.After(s.write.Time) {
			n++
		}
	}
	return n
}

// changed tells whether the quota that refused became another after the admission,
// or so shortly before that the admission could not know.
func (s refusedStart) changed(lag time.Duration) bool {
	for _, q := range s.ledger.quotas {
		if q.name != s.write.refusal.quota() {
			continue
		}
		for _, v := range q.versions {
			if v.from.After(s.held.opened.Time.Add(-lag)) && !v.from.After(s.write.Time) {
				return true
			}
		}
	}
	return false
}

// taken tells whether the pod would have had room without pods that came since the
// admission, and whose room no admission had promised.
func (r *refusedPod) taken(s refusedStart, lag time.Duration) bool {
	requested, used, limited, ok := s.write.refusal.lists()
	if !ok {
		return false
	}
	for _, q := range s.ledger.quotas {
		if facts := q.at(s.write.Time); q.name == s.write.refusal.quota() && facts != nil {
			came := r.comers(s, lag)
			came.add(r.phantoms(s, lag), 1)
			return fitsWithout(facts, requested, used, limited, came)
		}
	}
	return false
}

// comers is the load, when it was created, of what came since the admission of a
// refused pod and was there when that was refused, or a little before: a quota counts
// what is gone until its controller has seen that.
func (r *refusedPod) comers(s refusedStart, lag time.Duration) load {
	came := load{}
	for _, p := range r.late[s.write.Namespace] {
		since, until := s.held.opened.Time.Add(-lag), s.write.Received.Add(-lag)
		if p.created.Time.Before(since) || p.created.Time.After(s.write.Time) || p.gone.cameBefore(until) || p.over.cameBefore(until) {
			continue
		}
		if !slices.Contains(r.made[s.held], p) {
			came.add(loadOf(p.class, 1, p.requests, p.limits), 1)
		}
	}
	return came
}

// phantoms is the load of pods that were created twice since the admission of a refused
// pod, as far as the quota that refused it was not counted anew after that.
func (r *refusedPod) phantoms(s refusedStart, lag time.Duration) load {
	came := load{}
	for _, w := range r.twice[s.write.Namespace] {
		anew := slices.ContainsFunc(r.counted[s.write.Namespace+"/"+s.write.refusal.quota()], func(at time.Time) bool {
			return at.After(w.Time) && at.Before(s.write.Received.Add(-lag))
		})
		if !anew && !w.Time.Before(s.held.opened.Time.Add(-lag)) && !w.Received.After(s.write.Time) {
			came.add(loadOf(w.twice.class, 1, w.twice.requests, w.twice.limits), 1)
		}
	}
	return came
}

// fitsWithout tells whether what was requested had fitted without a load.
func fitsWithout(q *quotaFacts, requested, used, limited amounts, l load) bool {
	for key, n := range requested {
		at := slices.IndexFunc(q.limits, func(limit quotaLimit) bool { return limit.key == key })
		if at < 0 {
			return false
		}
		total := new(big.Int).Add(n, used.get(key))
		total.Sub(total, q.weigh(&q.limits[at], l))
		if total.Cmp(limited.get(key)) > 0 {
			return false
		}
	}
	return true
}
