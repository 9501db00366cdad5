package audit

import (
	"cmp"
	"math/big"
	"slices"
	"time"
)

// ledger is what stands against the ResourceQuotas of one namespace. A holder is a
// claim with the pods that belong to its job: it takes what its unit asked for, or
// what its pods take where that is more, since a job may grow. Pods without a holder
// are others.
type ledger struct {
	quotas  []*quotaHistory
	holders map[*claim]*holder
	byOwner map[string]*holder // by the UID of what its pods belong to
	pods    map[*pod]*stay
	others  load
	units   map[string]*unit // that are there
	changes int              // of quotas, but for what is used
}

type holder struct {
	held          *claim
	owner         string     // under which it is found
	facts         *unitFacts // that it was charged by
	charged, pods load
}

// stay is a pod that is there.
type stay struct {
	load   load
	holder *holder // nil: it is one of the others
}

// quotaHistory is a ResourceQuota and what it was before; where its facts are nil it
// is not there.
type quotaHistory struct {
	uid, name string
	versions  []quotaVersion
}

type quotaVersion struct {
	facts *quotaFacts
	from  time.Time
}

func (w *world) ledger(namespace string) *ledger {
	l := w.ledgers[namespace]
	if l == nil {
		l = &ledger{
			holders: map[*claim]*holder{}, byOwner: map[string]*holder{}, pods: map[*pod]*stay{}, others: load{}, units: map[string]*unit{},
		}
		w.ledgers[namespace] = l
	}
	return l
}

// seeQuota takes in a write of a ResourceQuota; without facts it is gone.
func (l *ledger) seeQuota(write *Write, facts *quotaFacts) {
	at := slices.IndexFunc(l.quotas, func(q *quotaHistory) bool { return q.uid == write.UID })
	if at < 0 {
		q := &quotaHistory{uid: write.UID, name: write.Name}
		if write.creates() {
			q.versions = append(q.versions, quotaVersion{nil, time.Time{}})
		}
		at, l.quotas = len(l.quotas), append(l.quotas, q)
	}
	if write.gone {
		facts = nil
	}
	q := l.quotas[at]
	if n := len(q.versions); n > 0 && q.versions[n-1].facts.same(facts) {
		q.versions[n-1].facts = facts
		return
	}
	q.versions = append(q.versions, quotaVersion{facts, write.Time})
	l.changes++
	slices.SortStableFunc(l.quotas, func(a, b *quotaHistory) int { return cmp.Compare(a.name, b.name) })
}

// now is the quota as it is; nil when it is not there.
func (q *quotaHistory) now() *quotaFacts { return q.versions[len(q.versions)-1].facts }

// at is the quota as it was at a time.
func (q *quotaHistory) at(when time.Time) *quotaFacts {
	for _, v := range slices.Backward(q.versions) {
		if !v.from.After(when) {
			return v.facts
		}
	}
	return nil
}

// within are those versions, the latest first, that may justify what is done at a
// time: news takes a while to arrive.
func (q *quotaHistory) within(now time.Time, lag time.Duration) []*quotaFacts {
	var out []*quotaFacts
	for i, v := range slices.Backward(q.versions) {
		if i+1 == len(q.versions) || now.Sub(q.versions[i+1].from) <= lag {
			out = append(out, v.facts)
		}
	}
	return out
}

// follow takes in what a write did to the claims and pods of the namespace.
func (l *ledger) follow(w *world, c *change) {
	if u := c.unit; u != nil {
		if l.units[u.uid] = u; !u.gone.IsZero() {
			delete(l.units, u.uid)
		}
	}
	if c.pod == nil || c.opened != nil || len(c.closed) > 0 {
		l.followClaims(w, c.w.Namespace)
	}
	if c.pod != nil {
		l.followPod(w, c.pod)
	}
}

func (l *ledger) followClaims(w *world, namespace string) {
	moved := false
	for held, h := range l.holders {
		if w.claims[held.key] != held {
			delete(l.holders, held)
			delete(l.byOwner, h.owner)
			moved = true
		}
	}
	for _, held := range w.claims {
		if held.place.namespace != namespace {
			continue
		}
		h := l.holders[held]
		if h == nil {
			h = &holder{held: held, charged: load{}, pods: load{}}
			l.holders[held] = h
			moved = true
		}
		if owner := held.owner(); owner != "" && l.byOwner[owner] == nil {
			l.byOwner[owner], h.owner = h, owner
			moved = true
		}
		if held.unit != nil && h.facts != held.unit.facts {
			h.facts = held.unit.facts
			h.charged = h.facts.load()
		}
	}
	if !moved {
		return
	}
	for p, s := range l.pods {
		if h := l.holderOf(w, p.uid); h != s.holder {
			l.home(s).add(s.load, -1)
			s.holder = h
			l.home(s).add(s.load, 1)
		}
	}
}

// owner is the UID of the object that the pods of a claim belong to; empty where a
// unit does not say.
func (c *claim) owner() string {
	if c.job != nil {
		return c.job.uid
	}
	return c.unit.facts.jobUID
}

func (l *ledger) followPod(w *world, p *pod) {
	s := l.pods[p]
	switch {
	case s == nil && !p.gone.IsZero():
		return
	case s == nil:
		s = &stay{holder: l.holderOf(w, p.uid)}
		l.pods[p] = s
	}
	l.home(s).add(s.load, -1)
	s.load = p.load()
	l.home(s).add(s.load, 1)
	if !p.gone.IsZero() {
		delete(l.pods, p)
	}
}

func (l *ledger) home(s *stay) load {
	if s.holder == nil {
		return l.others
	}
	return s.holder.pods
}

// holderOf is the first holder on the way from an object through its controllers; a
// label may name the job of a pod that nothing controls.
func (l *ledger) holderOf(w *world, uid string) *holder {
	for steps := 0; uid != "" && steps < 16; steps++ {
		if h := l.byOwner[uid]; h != nil {
			return h
		}
		next := w.owners[uid]
		if p := w.pods[uid]; next == "" && p != nil && p.job != nil {
			next = p.job.uid
		}
		uid = next
	}
	return nil
}

// taken is how much of a limit is taken, and how much of that is asked for by holders
// and not taken by pods yet. What is hidden, by holder, does not count.
func (l *ledger) taken(q *quotaFacts, limit *quotaLimit, hidden map[*holder]load) (all, coming *big.Int) {
	all, coming = q.weigh(limit, l.others), new(big.Int)
	all.Sub(all, q.weigh(limit, hidden[nil]))
	for _, h := range l.holders {
		charged, pods := q.weigh(limit, h.charged), q.weigh(limit, h.pods)
		if hides := hidden[h]; hides != nil {
			pods.Sub(pods, q.weigh(limit, hides))
		}
		if rest := new(big.Int).Sub(charged, pods); rest.Sign() > 0 {
			coming.Add(coming, rest)
			pods = charged
		}
		all.Add(all, pods)
	}
	return all, coming
}

// unseen are the loads of pods that need not be counted yet, or no more, at a time:
// those that were created less than a while before, those that should be gone, and
// those whose removal is under way.
func (w *world) unseen(l *ledger, at time.Time, lag time.Duration) map[*holder]load {
	hidden := map[*holder]load{}
	for p, s := range l.pods {
		fresh := !p.created.IsZero() && at.Sub(p.created.Time) < lag
		leaves, leaving := w.leaving[p.uid]
		if past := p.facts.until; !fresh && (past.IsZero() || at.Before(past)) && !(leaving && leaves.Before(at)) {
			continue
		}
		if hidden[s.holder] == nil {
			hidden[s.holder] = load{}
		}
		hidden[s.holder].add(s.load, 1)
	}
	return hidden
}

// quotas counts the ResourceQuotas that ever limited pods.
func (w *world) quotas() int {
	n := 0
	for _, l := range w.ledgers {
		for _, q := range l.quotas {
			if slices.ContainsFunc(q.versions, func(v quotaVersion) bool { return v.facts != nil && len(v.facts.limits) > 0 }) {
				n++
			}
		}
	}
	return n
}
