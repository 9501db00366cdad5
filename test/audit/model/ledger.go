package model

import (
	"cmp"
	"math/big"
	"slices"
	"time"
)

// Ledger has what counts against the ResourceQuotas of one namespace. A holder is a claim with the
// pods of its job. It counts the request of its unit, or that of its pods if it is larger, since a
// job may grow. The other pods have no holder.
type Ledger struct {
	Quotas  []*QuotaHistory
	Holders map[*Claim]*Holder
	byOwner map[string]*Holder // by the UID of the object that their pods belong to
	pods    map[*Pod]*stay
	Others  Load
	Units   map[string]*Unit // existing units
	Changes int              // of quotas, except in the used amounts
}

type Holder struct {
	Held          *Claim
	owner         string     // its key in byOwner
	Facts         *UnitFacts // from which its charge was computed
	Charged, Pods Load
}

// stay is an existing pod.
type stay struct {
	load   Load
	holder *Holder // nil for a pod without a holder
}

// QuotaHistory has all versions of a ResourceQuota. A version without facts is its deletion.
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

// seeQuota applies a write of a ResourceQuota. Nil facts delete it.
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

// Now returns the current version, or nil if the quota does not exist.
func (q *QuotaHistory) Now() *QuotaFacts { return q.Versions[len(q.Versions)-1].facts }

// At returns the version at a time.
func (q *QuotaHistory) At(when time.Time) *QuotaFacts {
	for _, v := range slices.Backward(q.Versions) {
		if !v.From.After(when) {
			return v.facts
		}
	}
	return nil
}

// Within returns the versions that may justify a decision at a time, the latest first. Programs see
// a change only after a delay of at most lag.
func (q *QuotaHistory) Within(now time.Time, lag time.Duration) []*QuotaFacts {
	var out []*QuotaFacts
	for i, v := range slices.Backward(q.Versions) {
		if i+1 == len(q.Versions) || now.Sub(q.Versions[i+1].From) <= lag {
			out = append(out, v.facts)
		}
	}
	return out
}

// follow applies a change to the claims and pods of the namespace.
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

// owner returns the UID of the object that the pods of a claim belong to, or "" if the unit does
// not name it.
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

// HolderOf returns the first holder among an object and its controllers. A pod without a controller
// belongs to the job that its label names.
func (l *Ledger) HolderOf(w *World, uid string) *Holder {
	for steps := 0; uid != "" && steps < maxOwners; steps++ {
		if h := l.byOwner[uid]; h != nil {
			return h
		}
		uid = w.above(uid)
	}
	return nil
}

// Taken returns how much of a limit is used, and how much of it is requested by holders whose pods
// do not exist yet. The loads in hidden, by holder, do not count.
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

// Unseen returns the loads of the pods that the controller need not count at a time; see unseen.
func (w *World) Unseen(l *Ledger, at time.Time, lag time.Duration) map[*Holder]Load {
	hidden := map[*Holder]Load{}
	for p, s := range l.pods {
		if !w.unseen(p, at, lag) {
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
