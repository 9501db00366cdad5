package audit

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"
)

// treeLag is how long after a change of the tree or of a ResourceQuota the previous version may still
// justify a decision.
const treeLag = 2 * time.Second

// history has the versions of a limit, the latest last.
type history[T any] struct{ versions []versionFrom[T] }

type versionFrom[T any] struct {
	value T
	from  time.Time
}

func (h *history[T]) set(value T, from time.Time) {
	h.versions = append(h.versions, versionFrom[T]{value, from})
}

// now returns the latest version, or the zero value.
func (h *history[T]) now() (value T) {
	if n := len(h.versions); n > 0 {
		value = h.versions[n-1].value
	}
	return value
}

// refusal returns why no version justifies a decision at a time, or "" if one does. Programs see a change only after
// a delay, so an earlier version may justify it, too. against returns the objections to a decision under one version.
func (h *history[T]) refusal(at time.Time, against func(T) []string) string {
	var all []string
	for i, v := range slices.Backward(h.versions) {
		if i+1 < len(h.versions) && at.Sub(h.versions[i+1].from) > treeLag {
			continue
		}
		reasons := against(v.value)
		if len(reasons) == 0 {
			return ""
		}
		all = append(all, strings.Join(reasons, "; "))
	}
	return strings.Join(all, "; and before the last change: ")
}

// trees has the quota trees. The oldest tree counts. While it is invalid, or after all trees are deleted,
// the last valid one stays in force.
type trees struct {
	history[*tree]
	all map[string]*treeFacts // by UID
}

// apply applies a write of a tree. Only trees in one namespace count.
func (t *trees) apply(w *write, now *treeFacts) {
	if w.namespace != "kube-system" {
		return
	}
	if t.all == nil {
		t.all = map[string]*treeFacts{}
	}
	if w.gone {
		delete(t.all, w.uid)
	} else {
		// Writes of the status do not change the spec.
		if was := t.all[w.uid]; was != nil && w.subresource != "" {
			now.tree, now.created = was.tree, was.created
		}
		t.all[w.uid] = now
	}
	if oldest := t.oldest(); oldest != nil && oldest.tree != nil && oldest.tree != t.now() {
		t.set(oldest.tree, w.Time)
	}
}

// oldest returns the tree that counts, or nil.
func (t *trees) oldest() (oldest *treeFacts) {
	for _, other := range t.all {
		if oldest == nil || cmp.Or(other.created.Compare(oldest.created.Time), cmp.Compare(other.name, oldest.name)) < 0 {
			oldest = other
		}
	}
	return oldest
}

// quota is a ResourceQuota. A nil version means that it was deleted.
type quota struct {
	history[*quotaFacts]
	uid, name string
}

// applyQuota applies a write of a ResourceQuota.
func (s *world) applyQuota(w *write, now *quotaFacts) {
	all := s.quotas[w.namespace]
	at := slices.IndexFunc(all, func(q *quota) bool { return q.uid == w.uid })
	if at < 0 {
		q := &quota{uid: w.uid, name: w.name}
		if w.creates() {
			q.set(nil, time.Time{})
		}
		at, all = len(all), append(all, q)
		s.quotas[w.namespace] = all
	}
	if w.gone {
		now = nil
	}
	// A write of only the used amounts is not a change.
	if q := all[at]; len(q.versions) == 0 || !reflect.DeepEqual(q.now(), now) {
		q.set(now, w.Time)
	}
}

// limitsPods reports whether the quota has ever limited pods.
func (q *quota) limitsPods() bool {
	return slices.ContainsFunc(q.versions, func(v versionFrom[*quotaFacts]) bool { return v.value != nil && len(v.value.hard) > 0 })
}
