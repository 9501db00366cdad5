package checks

import (
	"math/big"
	"slices"
	"time"

	"kube-queue.dev/kube-queue/test/audit/model"
)

// admission is the user with which the API server updates a quota for each pod that it admits.
// The quota controller counts all existing pods with its own user.
const admission = "system:apiserver"

// refusedPod checks the initial pods of admitted jobs. It decides at the end of the log, when
// the state at each rejection is known.
type refusedPod struct {
	made    map[*model.Claim][]*model.Pod // by claim
	late    map[string][]*model.Pod       // by namespace: pods without a guarantee from an admission
	refused []refusedStart
	nobodys int
	// twice are writes by which quotas count a pod that does not exist, by namespace. counted
	// are the times when each quota was counted again, by namespace and name.
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
			f.Checked++
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
			f.Checked++
			f.fail("refused-pod", s.write.Moment(), s.held, "pod %s, one of the %d initial pods, was rejected %s after the admission: %s", s.write.Refusal.Name,
				s.size, s.write.Time.Sub(s.held.Opened.Time).Round(time.Millisecond), s.write.Refusal.Message)
		}
	}
	for _, n := range []struct {
		count int
		what  string
	}{
		{r.nobodys, "rejected pods belong to no admitted job"},
		{again, "rejected pods already existed under the same name: the API server checks the quota first"},
		{later, "rejected pods are no initial pods of their jobs: later growth, or replacements of other pods"},
		{changed, "pods were rejected by a ResourceQuota that changed after the admission"},
		{taken, "pods were rejected because other pods, pods of jobs that grew, or pods that were created twice used the quota after the admission"},
	} {
		if n.count > 0 {
			f.NotChecked += n.count
			f.note("%d %s", n.count, n.what)
		}
	}
}

// isThere reports whether the claim already had a pod of that name at the rejection: an
// operator that has not observed its own pod yet creates it again.
func (r *refusedPod) isThere(s refusedStart) bool {
	return slices.ContainsFunc(r.made[s.held], func(p *model.Pod) bool {
		return p.Name == s.write.Refusal.Name && !p.Created.Time.After(s.write.Time) && !p.Gone.CameBefore(s.write.Received)
	})
}

// before counts the pods of the claim at the time of the rejection.
func (r *refusedPod) before(s refusedStart) int {
	n := 0
	for _, p := range r.made[s.held] {
		if !p.Created.Time.After(s.write.Time) {
			n++
		}
	}
	return n
}

// changed reports whether the quota that rejected the pod changed after the admission, or so
// shortly before that the admission could not observe it.
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

// taken reports whether the pod would have fitted without pods that were created after the
// admission without a guarantee from an admission.
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

// comers is the load of pods that were created after the admission of a rejected pod and
// existed at its rejection or shortly before: a quota counts deleted pods until its
// controller has observed the deletion.
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

// phantoms is the load of pods that were created twice after the admission of a rejected pod,
// unless the quota that rejected it was counted again since.
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

// fitsWithout reports whether the request would have fitted without a load.
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
