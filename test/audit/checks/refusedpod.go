package checks

import (
	"slices"
	"time"

	"kube-queue.dev/kube-queue/test/audit/facts"
	"kube-queue.dev/kube-queue/test/audit/state"
)

// refusedPod checks the initial pods of admitted jobs. It decides at the end of the log, when
// the state at each rejection is known.
type refusedPod struct {
	admitted map[*state.Unit]facts.Moment // the latest admission
	made     map[*state.Unit][]*state.Pod // since then
	late     map[string][]*state.Pod      // by namespace: pods without a guarantee from an admission
	twice    map[string][]*facts.Write    // by namespace: quotas count the pod of each, which does not exist
	refused  []refusedStart
	skipped  map[string]int // by reason
}

type refusedStart struct {
	write    *facts.Write
	unit     *state.Unit
	admitted facts.Moment
	made     []*state.Pod // before it
	size     int64
}

func newRefusedPod() inspector {
	return &refusedPod{
		admitted: map[*state.Unit]facts.Moment{}, made: map[*state.Unit][]*state.Pod{}, late: map[string][]*state.Pod{},
		twice: map[string][]*facts.Write{}, skipped: map[string]int{},
	}
}

func (r *refusedPod) see(s *state.State, c *state.Change, f *findings) {
	w := c.Write
	switch {
	case c.Admitted:
		r.admitted[c.Unit], r.made[c.Unit] = w.Moment(), nil
	case c.Pod != nil && c.Born:
		u := s.HolderOf(c.Pod.UID)
		if u == nil || int64(len(r.made[u])) >= u.Facts.Pods() {
			r.late[w.Namespace] = append(r.late[w.Namespace], c.Pod)
		} else {
			f.Checked++
		}
		if u != nil {
			r.made[u] = append(r.made[u], c.Pod)
		}
	case w.Twice != nil:
		r.twice[w.Namespace] = append(r.twice[w.Namespace], w)
	case w.Refusal != nil:
		var u *state.Unit
		if w.Refusal.Pod != nil {
			u = s.HolderOf(s.OwnerOf(w.Refusal.Pod, w.Namespace))
		}
		if u == nil {
			r.skipped["belong to no admitted job"]++
			return
		}
		r.refused = append(r.refused, refusedStart{w, u, r.admitted[u], slices.Clone(r.made[u]), u.Facts.Pods()})
	}
}

func (r *refusedPod) finish(s *state.State, f *findings) {
	for _, x := range r.refused {
		if why := r.excuse(s, x); why != "" {
			r.skipped[why]++
			continue
		}
		f.Checked++
		f.fail("refused-pod", x.write.Moment(), x.unit, "pod %s, one of the %d initial pods, was rejected %s after the admission: %s", x.write.Refusal.Name,
			x.size, x.write.Time.Sub(x.admitted.Time).Round(time.Millisecond), x.write.Refusal.Message)
	}
	for why, n := range r.skipped {
		f.NotChecked += n
		f.note("%d rejected pods %s", n, why)
	}
	slices.Sort(f.Notes)
}

// excuse returns why a rejection may be right, or "".
func (r *refusedPod) excuse(s *state.State, x refusedStart) string {
	quotas := s.Quotas[x.write.Namespace]
	at := slices.IndexFunc(quotas, func(q *state.QuotaObject) bool { return q.Name == x.write.Refusal.Quota() })
	switch {
	case slices.ContainsFunc(x.made, func(p *state.Pod) bool { return p.Name == x.write.Refusal.Name && !p.Gone.CameBefore(x.write.Received) }):
		// An operator that has not observed its own pod yet creates it again.
		return "already existed under the same name: the API server checks the quota first"
	case int64(len(x.made)) >= x.size:
		return "are no initial pods of their jobs: later growth, or replacements of other pods"
	case at < 0 || quotas[at].ChangedWithin(x.admitted.Time.Add(-facts.TreeLag), x.write.Time):
		return "were rejected by a ResourceQuota that changed after the admission"
	case r.taken(quotas[at], x, *s.Options.PodLag):
		return "were rejected because other pods, pods of jobs that grew, or pods that were created twice used the quota after the admission"
	}
	return ""
}

// taken reports whether the pod would have fitted without the pods that came after the admission without a
// guarantee from an admission. A quota counts deleted pods until its controller has observed the deletion.
func (r *refusedPod) taken(q *state.QuotaObject, x refusedStart, lag time.Duration) bool {
	since, until := x.admitted.Time.Add(-lag), x.write.Received.Add(-lag)
	came := facts.Load{}
	for _, p := range r.late[x.write.Namespace] {
		gone := p.Gone.CameBefore(until) || p.Over.CameBefore(until)
		if !gone && !p.Created.Time.Before(since) && !p.Created.Time.After(x.write.Time) && !slices.Contains(x.made, p) {
			came.Add(facts.LoadOf(p.Class, 1, p.Requests, p.Limits))
		}
	}
	for _, w := range r.twice[x.write.Namespace] {
		if !w.Time.Before(since) && !w.Received.After(x.write.Time) {
			came.Add(facts.LoadOf(w.Twice.Class, 1, w.Twice.Requests, w.Twice.Limits))
		}
	}
	requested, used, limited, ok := x.write.Refusal.Lists()
	for key, n := range requested {
		limit := q.Now().Limit(key)
		if limit == nil || n+used[key]-q.Now().Weigh(limit, came) > limited[key] {
			return false
		}
	}
	return ok
}
