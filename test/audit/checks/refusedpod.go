package checks

import (
	"math/big"
	"slices"
	"time"

	"kube-queue.dev/kube-queue/test/audit/model"
)

// admission is as whom the API server counts what it lets through; the quota's
// controller counts all that is there.
const admission = "system:apiserver"

// refusedPod looks at the pods with which admitted jobs start. It judges at the end,
// when it is known what was there at each refusal.
type refusedPod struct {
	made    map[*model.Claim][]*model.Pod // in each claim
	late    map[string][]*model.Pod       // by namespace, those that no admission had promised room
	refused []refusedStart
	nobodys int
	// twice are writes by which quotas count a pod that is not there, by namespace, and
	// counted when each quota was counted again, by namespace and name.
	twice   map[string][]*model.Write
	counted map[string][]time.Time
}

type refusedStart struct {
	write  *model.Write
	held   *model.Claim
	size   int64
	ledger *model.Ledger
}

func newRefusedPod() inspector {
	return &refusedPod{made: map[*model.Claim][]*model.Pod{}, late: map[string][]*model.Pod{}, twice: map[string][]*model.Write{}, counted: map[string][]time.Time{}}
}

func (r *refusedPod) see(w *model.World, c *model.Change, f *findings) {
	l := w.Ledger(c.Write.Namespace)
	switch {
	case c.Pod != nil && c.Born:
		h := l.HolderOf(w, c.Pod.UID)
		if h == nil || h.Facts == nil || int64(len(r.made[h.Held])) >= h.Facts.Size() {
			r.late[c.Pod.Namespace] = append(r.late[c.Pod.Namespace], c.Pod)
		} else {
			f.Judged++
		}
		if h != nil {
			r.made[h.Held] = append(r.made[h.Held], c.Pod)
		}
	case c.Write.Twice != nil:
		r.twice[c.Write.Namespace] = append(r.twice[c.Write.Namespace], c.Write)
	case c.Write.Resource == "resourcequotas" && c.Write.Subresource == "status" && c.Write.User != admission && c.Write.OK():
		quota := c.Write.Namespace + "/" + c.Write.Name
		r.counted[quota] = append(r.counted[quota], c.Write.Time)
	case c.Write.Refusal != nil:
		var h *model.Holder
		if sent := c.Write.Refusal.Pod; sent != nil {
			h = l.HolderOf(w, w.OwnerOf(sent, c.Write.Namespace))
		}
		if h == nil || h.Facts == nil {
			r.nobodys++
			return
		}
		r.refused = append(r.refused, refusedStart{c.Write, h.Held, h.Facts.Size(), l})
	}
}

func (r *refusedPod) finish(w *model.World, f *findings) {
	again, later, changed, taken := 0, 0, 0, 0
	for _, s := range r.refused {
		switch {
		case r.isThere(s):
			again++
		case int64(r.before(s))+1 > s.size:
			later++
		case s.changed(*w.Options.TreeLag):
			changed++
		case r.taken(s, *w.Options.PodLag):
			taken++
		default:
			f.Judged++
			f.fail("refused-pod", s.write.Moment(), s.held, "pod %s, one of the %d that it starts with, was refused %s after the admission: %s", s.write.Refusal.Name,
				s.size, s.write.Time.Sub(s.held.Opened.Time).Round(time.Millisecond), s.write.Refusal.Message)
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

// isThere reports whether the claim had a pod of that name when it was refused: an
// operator that has not seen its own pod yet makes it once more.
func (r *refusedPod) isThere(s refusedStart) bool {
	return slices.ContainsFunc(r.made[s.held], func(p *model.Pod) bool {
		return p.Name == s.write.Refusal.Name && !p.Created.Time.After(s.write.Time) && !p.Gone.CameBefore(s.write.Received)
	})
}

// before counts the pods that the claim had made when the refusal was answered.
func (r *refusedPod) before(s refusedStart) int {
	n := 0
	for _, p := range r.made[s.held] {
		if !p.Created.Time.After(s.write.Time) {
			n++
		}
	}
	return n
}

// changed reports whether the quota that refused became another after the admission,
// or so shortly before that the admission could not know.
func (s refusedStart) changed(lag time.Duration) bool {
	for _, q := range s.ledger.Quotas {
		if q.Name != s.write.Refusal.Quota() {
			continue
		}
		for _, v := range q.Versions {
			if v.From.After(s.held.Opened.Time.Add(-lag)) && !v.From.After(s.write.Time) {
				return true
			}
		}
	}
	return false
}

// taken reports whether the pod would have had room without pods that came since the
// admission, and whose room no admission had promised.
func (r *refusedPod) taken(s refusedStart, lag time.Duration) bool {
	requested, used, limited, ok := s.write.Refusal.Lists()
	if !ok {
		return false
	}
	for _, q := range s.ledger.Quotas {
		if facts := q.At(s.write.Time); q.Name == s.write.Refusal.Quota() && facts != nil {
			came := r.comers(s, lag)
			came.Add(r.phantoms(s, lag), 1)
			return fitsWithout(facts, requested, used, limited, came)
		}
	}
	return false
}

// comers is the load, when it was created, of what came since the admission of a
// refused pod and was there when that was refused, or a little before: a quota counts
// what is gone until its controller has seen that.
func (r *refusedPod) comers(s refusedStart, lag time.Duration) model.Load {
	came := model.Load{}
	for _, p := range r.late[s.write.Namespace] {
		since, until := s.held.Opened.Time.Add(-lag), s.write.Received.Add(-lag)
		if p.Created.Time.Before(since) || p.Created.Time.After(s.write.Time) || p.Gone.CameBefore(until) || p.Over.CameBefore(until) {
			continue
		}
		if !slices.Contains(r.made[s.held], p) {
			came.Add(model.LoadOf(p.Class, 1, p.Requests, p.Limits), 1)
		}
	}
	return came
}

// phantoms is the load of pods that were created twice since the admission of a refused
// pod, as far as the quota that refused it was not counted again after that.
func (r *refusedPod) phantoms(s refusedStart, lag time.Duration) model.Load {
	came := model.Load{}
	for _, w := range r.twice[s.write.Namespace] {
		again := slices.ContainsFunc(r.counted[s.write.Namespace+"/"+s.write.Refusal.Quota()], func(at time.Time) bool {
			return at.After(w.Time) && at.Before(s.write.Received.Add(-lag))
		})
		if !again && !w.Time.Before(s.held.Opened.Time.Add(-lag)) && !w.Received.After(s.write.Time) {
			came.Add(model.LoadOf(w.Twice.Class, 1, w.Twice.Requests, w.Twice.Limits), 1)
		}
	}
	return came
}

// fitsWithout reports whether what was requested had fitted without a load.
func fitsWithout(q *model.QuotaFacts, requested, used, limited model.Amounts, l model.Load) bool {
	for key, n := range requested {
		at := slices.IndexFunc(q.Limits, func(limit model.QuotaLimit) bool { return limit.Key == key })
		if at < 0 {
			return false
		}
		total := new(big.Int).Add(n, used.Get(key))
		total.Sub(total, q.Weigh(&q.Limits[at], l))
		if total.Cmp(limited.Get(key)) > 0 {
			return false
		}
	}
	return true
}
