package model

import (
	"cmp"
	"math/big"
	"slices"
	"time"
)

// Ledger is what counts against the ResourceQuotas of one namespace. A holder is a
// claim with the pods that belong to its job: it takes what its unit requested, or
// what its pods take where that is more, since a job may grow. Pods without a holder
// are others.
type Ledger struct {
	Quotas  []*QuotaHistory
	Holders map[*Claim]*Holder
	byOwner map[string]*Holder // by the UID of what its pods belong to
	pods    map[*Pod]*stay
	Others  Load
	Units   map[string]*Unit // that are there
	Changes int              // of quotas, but for what is used
}

type Holder struct {
	Held          *Claim
	owner         string     // under which it is found
	Facts         *UnitFacts // that it was charged by
	Charged, Pods Load
}

// stay is a pod that is there.
type stay struct {
	load   Load
	holder *Holder // nil: it is one of the others
}

// QuotaHistory is a ResourceQuota and what it was before; where its facts are nil it
// is not there.
type QuotaHistory struct {
	uid, Name string
	Versions  []quotaVersion
}

type quotaVersion struct {
	facts *QuotaFacts
	From  time.Time
}

func (w *World) Ledger(namespace string) *Ledger {
	l := w.ledgers[namespace]
	if l == nil {
		l = &Ledger{
			Holders: map[*Claim]*Holder{}, byOwner: map[string]*Holder{}, pods: map[*Pod]*stay{}, Others: Load{}, Units: map[string]*Unit{},
		}
		w.ledgers[namespace] = l
	}
	return l
}

// seeQuota applies a write of a ResourceQuota; without facts it is deleted.
func (l *Ledger) seeQuota(write *Write, facts *QuotaFacts) {
	at := slices.IndexFunc(l.Quotas, func(q *QuotaHistory) bool { return q.uid == write.UID })
	if at < 0 {
		q := &QuotaHistory{uid: write.UID, Name: write.Name}
		if write.creates() {
			q.Versions = append(q.Versions, quotaVersion{nil, time.Time{}})
		}
		at, l.Quotas = len(l.Quotas), append(l.Quotas, q)
	}
	if write.gone {
		facts = nil
	}
	q := l.Quotas[at]
	if n := len(q.Versions); n > 0 && q.Versions[n-1].facts.same(facts) {
		q.Versions[n-1].facts = facts
		return
	}
	q.Versions = append(q.Versions, quotaVersion{facts, write.Time})
	l.Changes++
	slices.SortStableFunc(l.Quotas, func(a, b *QuotaHistory) int { return cmp.Compare(a.Name, b.Name) })
}

// Now is the quota as it is; nil when it is not there.
func (q *QuotaHistory) Now() *QuotaFacts { return q.Versions[len(q.Versions)-1].facts }

// At is the quota as it was at a time.
func (q *QuotaHistory) At(when time.Time) *QuotaFacts {
	for _, v := range slices.Backward(q.Versions) {
		if !v.From.After(when) {
			return v.facts
		}
	}
	return nil
}

// Within are those versions, the latest first, that may justify what is done at a
// time: news takes a while to arrive.
func (q *QuotaHistory) Within(now time.Time, lag time.Duration) []*QuotaFacts {
	var out []*QuotaFacts
	for i, v := range slices.Backward(q.Versions) {
		if i+1 == len(q.Versions) || now.Sub(q.Versions[i+1].From) <= lag {
			out = append(out, v.facts)
		}
	}
	return out
}

// follow applies what a write did to the claims and pods of the namespace.
func (l *Ledger) follow(w *World, c *Change) {
	if u := c.Unit; u != nil {
		if l.Units[u.UID] = u; !u.Gone.IsZero() {
			delete(l.Units, u.UID)
		}
	}
	if c.Pod == nil || c.Opened != nil || len(c.Closed) > 0 {
		l.followClaims(w, c.Write.Namespace)
	}
	if c.Pod != nil {
		l.followPod(w, c.Pod)
	}
}

func (l *Ledger) followClaims(w *World, namespace string) {
	moved := false
	for held, h := range l.Holders {
		if w.Claims[held.Key] != held {
			delete(l.Holders, held)
			delete(l.byOwner, h.owner)
			moved = true
		}
	}
	for _, held := range w.Claims {
		if held.Place.Namespace != namespace {
			continue
		}
		h := l.Holders[held]
		if h == nil {
			h = &Holder{Held: held, Charged: Load{}, Pods: Load{}}
			l.Holders[held] = h
			moved = true
		}
		if owner := held.owner(); owner != "" && l.byOwner[owner] == nil {
			l.byOwner[owner], h.owner = h, owner
			moved = true
		}
		if held.Unit != nil && h.Facts != held.Unit.Facts {
			h.Facts = held.Unit.Facts
			h.Charged = h.Facts.Load()
		}
	}
	if !moved {
		return
	}
	for p, s := range l.pods {
		if h := l.HolderOf(w, p.UID); h != s.holder {
			l.home(s).Add(s.load, -1)
			s.holder = h
			l.home(s).Add(s.load, 1)
		}
	}
}

// owner is the UID of the object that the pods of a claim belong to; empty where a
// unit does not say.
func (c *Claim) owner() string {
	if c.Job != nil {
		return c.Job.UID
	}
	return c.Unit.Facts.jobUID
}

func (l *Ledger) followPod(w *World, p *Pod) {
	s := l.pods[p]
	switch {
	case s == nil && !p.Gone.IsZero():
		return
	case s == nil:
		s = &stay{holder: l.HolderOf(w, p.UID)}
		l.pods[p] = s
	}
	l.home(s).Add(s.load, -1)
	s.load = p.load()
	l.home(s).Add(s.load, 1)
	if !p.Gone.IsZero() {
		delete(l.pods, p)
	}
}

func (l *Ledger) home(s *stay) Load {
	if s.holder == nil {
		return l.Others
	}
	return s.holder.Pods
}

// HolderOf is the first holder on the way from an object through its controllers; a
// label may name the job of a pod that nothing controls.
func (l *Ledger) HolderOf(w *World, uid string) *Holder {
	for steps := 0; uid != "" && steps < 16; steps++ {
		if h := l.byOwner[uid]; h != nil {
			return h
		}
		next := w.owners[uid]
		if p := w.Pods[uid]; next == "" && p != nil && p.job != nil {
			next = p.job.UID
		}
		uid = next
	}
	return nil
}

// Taken is how much of a limit is taken, and how much of that is requested by holders
// and not taken by pods yet. What is hidden, by holder, does not count.
func (l *Ledger) Taken(q *QuotaFacts, limit *QuotaLimit, hidden map[*Holder]Load) (all, coming *big.Int) {
	all, coming = q.Weigh(limit, l.Others), new(big.Int)
	all.Sub(all, q.Weigh(limit, hidden[nil]))
	for _, h := range l.Holders {
		charged, pods := q.Weigh(limit, h.Charged), q.Weigh(limit, h.Pods)
		if hides := hidden[h]; hides != nil {
			pods.Sub(pods, q.Weigh(limit, hides))
		}
		if rest := new(big.Int).Sub(charged, pods); rest.Sign() > 0 {
			coming.Add(coming, rest)
			pods = charged
		}
		all.Add(all, pods)
	}
	return all, coming
}

// Unseen are the loads of pods that need not be counted yet, or no more, at a time:
// those that were created less than a while before, those that should be gone, and
// those whose removal is under way.
func (w *World) Unseen(l *Ledger, at time.Time, lag time.Duration) map[*Holder]Load {
	hidden := map[*Holder]Load{}
	for p, s := range l.pods {
		fresh := !p.Created.IsZero() && at.Sub(p.Created.Time) < lag
		leaves, leaving := w.leaving[p.UID]
		if past := p.facts.until; !fresh && (past.IsZero() || at.Before(past)) && !(leaving && leaves.Before(at)) {
			continue
		}
		if hidden[s.holder] == nil {
			hidden[s.holder] = Load{}
		}
		hidden[s.holder].Add(s.load, 1)
	}
	return hidden
}

// Quotas counts the ResourceQuotas that ever limited pods.
func (w *World) Quotas() int {
	n := 0
	for _, l := range w.ledgers {
		for _, q := range l.Quotas {
			if slices.ContainsFunc(q.Versions, func(v quotaVersion) bool { return v.facts != nil && len(v.facts.Limits) > 0 }) {
				n++
			}
		}
	}
	return n
}
