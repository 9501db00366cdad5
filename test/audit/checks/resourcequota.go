package checks

import (
	"fmt"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/test/audit/facts"
	"kube-queue.dev/kube-queue/test/audit/state"
)

// requested returns when a write was requested: its decision is not younger.
func requested(w *facts.Write) time.Time {
	if w.Received.IsZero() {
		return w.Time
	}
	return w.Received
}

// seeNamespace checks an admission against every ResourceQuota of its namespace.
func seeNamespace(s *state.State, c *state.Change, f *findings) {
	namespace := c.Unit.Namespace
	at := requested(c.Write)
	charges := s.Charges(namespace, func(p *state.Pod) bool { return !s.Unseen(p, at, *s.Options.PodLag) })
	asked := c.Unit.Facts.Load()
	limited := false
	for _, q := range s.Quotas[namespace] {
		broken := ""
		for i, version := range q.Within(c.Write.Time) {
			why := ""
			if version != nil && len(version.Limits) > 0 {
				limited = true
				why = breach(q.Name, version, charges, asked)
			}
			if why == "" {
				broken = "" // one version justifies it
				break
			}
			if i == 0 {
				broken = why
			}
		}
		if broken != "" {
			f.fail("over-limit", c.Write.Moment(), holder(c), "%s", broken)
		}
	}
	if limited {
		f.Checked++
	}
}

// breach returns why an admission violates a quota; "" if it does not.
func breach(name string, q *facts.Quota, charges []*state.Charge, asked facts.Load) string {
	var parts []string
	for i := range q.Limits {
		limit := &q.Limits[i]
		more := q.Weigh(limit, asked)
		if more <= 0 {
			continue
		}
		if limit.Unknown {
			return fmt.Sprintf("ResourceQuota %s has no status for %s, so no pod can be created", name, limit.Key)
		}
		if total := taken(q, limit, charges); total > limit.Hard {
			var holders []string
			for _, c := range charges {
				if all := taken(q, limit, []*state.Charge{c}); all > 0 {
					holders = append(holders, fmt.Sprintf("%s by %s", facts.Figure(limit.Key, all), c))
				}
			}
			parts = append(parts, exceeds(limit.Key, total, more, limit.Hard, holders))
		}
	}
	if parts == nil {
		return ""
	}
	return fmt.Sprintf("ResourceQuota %s: %s", name, strings.Join(parts, "; "))
}

// taken returns how much of a limit is used: what units request, or their pods if that is more, and other
// pods.
func taken(q *facts.Quota, limit *facts.QuotaLimit, charges []*state.Charge) (all int64) {
	for _, c := range charges {
		var admitted, pods int64
		for _, u := range c.Holding {
			admitted += q.Weigh(limit, u.Facts.Load())
		}
		for _, p := range c.Pods {
			pods += q.Weigh(limit, p.Load())
		}
		all += max(admitted, pods)
	}
	return all
}
