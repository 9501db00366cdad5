package audit

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/test/audit/log"
)

// rejections are those of the initial pods of admitted jobs. They are judged at the end of the log, when
// the state at each of them is known.
type rejections struct {
	admitted map[*unit]Moment    // the latest admission
	made     map[*unit][]*pod    // since then
	late     map[string][]*pod   // by namespace: pods without a guarantee from an admission
	twice    map[string][]*write // by namespace: quotas count the pod of each, which does not exist
	refused  []refusedStart
	skipped  map[string]int // by reason
}

type refusedStart struct {
	write    *write
	unit     *unit
	admitted Moment
	made     []*pod // before it
	size     int64
}

func refusedPod() law {
	r := &rejections{
		admitted: map[*unit]Moment{}, made: map[*unit][]*pod{}, late: map[string][]*pod{},
		twice: map[string][]*write{}, skipped: map[string]int{},
	}
	return law{"refused-pod", "no ResourceQuota rejects an initial pod of an admitted job", r.see, r.finish}
}

func (r *rejections) see(s *world, c *change, f *Check) {
	switch {
	case c.admitted:
		r.admitted[c.unit], r.made[c.unit] = c.Moment, nil
	case c.pod != nil && c.born:
		u := s.holderOf(c.pod.uid)
		if u == nil || int64(len(r.made[u])) >= u.now.podCount() {
			r.late[c.namespace] = append(r.late[c.namespace], c.pod)
		} else {
			f.Checked++
		}
		if u != nil {
			r.made[u] = append(r.made[u], c.pod)
		}
	case c.twice != nil:
		r.twice[c.namespace] = append(r.twice[c.namespace], c.write)
	case c.refusal != nil:
		var u *unit
		if c.refusal.pod != nil {
			u = s.holderOf(s.ownerOfPod(c.refusal.pod, c.namespace))
		}
		if u == nil {
			r.skipped["belong to no admitted job"]++
			return
		}
		r.refused = append(r.refused, refusedStart{c.write, u, r.admitted[u], slices.Clone(r.made[u]), u.now.podCount()})
	}
}

func (r *rejections) finish(s *world, f *Check) {
	for _, x := range r.refused {
		if why := r.excuse(s, x); why != "" {
			r.skipped[why]++
			continue
		}
		f.Checked++
		f.fail("refused-pod", x.write.Moment, x.unit, "pod %s, one of the %d initial pods, was rejected %s after the admission: %s", x.write.refusal.name,
			x.size, x.write.Time.Sub(x.admitted.Time).Round(time.Millisecond), x.write.refusal.message)
	}
	for why, n := range r.skipped {
		f.NotChecked += n
		f.note("%d rejected pods %s", n, why)
	}
	slices.Sort(f.Notes)
}

// excuse returns why a rejection may be right, or "".
func (r *rejections) excuse(s *world, x refusedStart) string {
	quotas, refusal := s.quotas[x.write.namespace], x.write.refusal
	at := slices.IndexFunc(quotas, func(q *quota) bool { return q.name == refusal.quota() })
	switch {
	case slices.ContainsFunc(x.made, func(p *pod) bool { return p.name == refusal.name && !p.gone.cameBefore(x.write.received) }):
		// An operator that has not observed its own pod yet creates it again.
		return "already existed under the same name: the API server checks the quota first"
	case int64(len(x.made)) >= x.size:
		return "are no initial pods of their jobs: later growth, or replacements of other pods"
	case at < 0 || quotas[at].changedWithin(x.admitted.Time.Add(-treeLag), x.write.Time):
		return "were rejected by a ResourceQuota that changed after the admission"
	case r.taken(quotas[at].now(), x, s.podLag):
		return "were rejected because other pods, pods of jobs that grew, or pods that were created twice used the quota after the admission"
	}
	return ""
}

// taken reports whether the pod would have fitted without the pods that came after the admission without a
// guarantee from an admission. A quota counts deleted pods until its controller has observed the deletion.
func (r *rejections) taken(q *quotaFacts, x refusedStart, lag time.Duration) bool {
	since, until := x.admitted.Time.Add(-lag), x.write.received.Add(-lag)
	var came []podGroup
	for _, p := range r.late[x.write.namespace] {
		gone := p.gone.cameBefore(until) || p.over.cameBefore(until)
		if !gone && !p.created.Time.Before(since) && !p.created.Time.After(x.write.Time) && !slices.Contains(x.made, p) {
			g := p.podGroup
			g.ended = false
			came = append(came, g)
		}
	}
	for _, w := range r.twice[x.write.namespace] {
		if !w.Time.Before(since) && !w.received.After(x.write.Time) {
			came = append(came, w.twice.podGroup)
		}
	}
	requested, used, limited := x.write.refusal.lists()
	for key, n := range requested {
		limit := q.limit(key)
		if limit == nil || n+used[key]-q.weigh(limit, came...) > limited[key] {
			return false
		}
	}
	return requested != nil
}

// refusal is the API server's refusal of a pod because of a ResourceQuota.
type refusal struct {
	message string
	pod     *podFacts // from the request; nil if the log does not contain it
	name    string
}

// refusalOf reads a create with response 403. It returns nil if no quota is the reason.
func refusalOf(w *write, e *log.Entry) *refusal {
	message := e.ResponseStatus.Message
	if message == "" {
		var answer struct{ Message string }
		if json.Unmarshal(e.ResponseObject, &answer) == nil {
			message = answer.Message
		}
	}
	if !slices.ContainsFunc(quotaPhrases, func(p string) bool { return strings.Contains(message, p) }) {
		return nil
	}
	pod, about := podIn(e.RequestObject)
	return &refusal{message, pod, cmp.Or(w.name, about.Name, about.GenerateName)}
}

// quotaPhrases are the phrases in refusals that precede the name of the quota.
var quotaPhrases = []string{"exceeded quota: ", "failed quota: ", "status unknown for quota: "}

// quota returns the name of the quota that refused.
func (r *refusal) quota() string {
	for _, phrase := range quotaPhrases {
		if _, rest, ok := strings.Cut(r.message, phrase); ok {
			return rest[:strings.IndexAny(rest+",", ",:")]
		}
	}
	return ""
}

// lists returns the amounts in the message: requested, used before, and limited; nil if it has none.
func (r *refusal) lists() (requested, used, limited amounts) {
	_, rest, _ := strings.Cut(r.message, "requested: ")
	asked, rest, _ := strings.Cut(rest, ", used: ")
	before, hard, _ := strings.Cut(rest, ", limited: ")
	requested, used, limited = listed(asked), listed(before), listed(hard)
	if used == nil || limited == nil {
		return nil, nil, nil
	}
	return requested, used, limited
}

// listed reads amounts like requests.cpu=3,pods=1.
func listed(text string) amounts {
	list := corev1.ResourceList{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		quantity, err := resource.ParseQuantity(value)
		if err != nil {
			return nil
		}
		list[corev1.ResourceName(name)] = quantity
	}
	return amountsOf(list)
}
