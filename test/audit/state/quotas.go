package state

import (
	"cmp"
	"slices"
	"time"

	"kube-queue.dev/kube-queue/test/audit/facts"
)

// History has the versions of a limit, the latest last.
type History[T any] struct{ versions []version[T] }

type version[T any] struct {
	value T
	from  time.Time
}

func (h *History[T]) set(value T, from time.Time) {
	h.versions = append(h.versions, version[T]{value, from})
}

// Now returns the latest version, or the zero value.
func (h *History[T]) Now() (value T) {
	if n := len(h.versions); n > 0 {
		value = h.versions[n-1].value
	}
	return value
}

// Within returns the versions that may justify a decision at a time, the latest first. Programs see a
// change only after a delay.
func (h *History[T]) Within(now time.Time) []T {
	var out []T
	for i, v := range slices.Backward(h.versions) {
		if i+1 == len(h.versions) || now.Sub(h.versions[i+1].from) <= facts.TreeLag {
			out = append(out, v.value)
		}
	}
	return out
}

// ChangedWithin reports whether a version is newer than a time, and not newer than another.
func (h *History[T]) ChangedWithin(after, until time.Time) bool {
	return slices.ContainsFunc(h.versions, func(v version[T]) bool { return v.from.After(after) && !v.from.After(until) })
}

// Trees has the quota trees. The oldest tree counts. While it is invalid, or after all trees are deleted,
// the last valid one stays in force.
type Trees struct {
	History[*facts.Tree]
	// Changes counts how often another tree came into force.
	Changes int

	all map[string]*Tree // by UID
}

// Tree is an ElasticQuotaTree.
type Tree struct {
	*facts.TreeObject
	name string
}

// TreeNamespace is the namespace of the trees that count.
const TreeNamespace = "kube-system"

func (t *Trees) apply(w *facts.Write, now *facts.TreeObject) {
	if w.Namespace != TreeNamespace {
		return
	}
	if w.Gone {
		t.remove(w)
		return
	}
	// A write of the status does not change the spec.
	if was := t.all[w.UID]; was != nil && w.Subresource != "" {
		now.Tree, now.Created = was.Tree, was.Created
	}
	if t.all == nil {
		t.all = map[string]*Tree{}
	}
	t.all[w.UID] = &Tree{now, w.Name}
	t.crown(w.Time)
}

func (t *Trees) remove(w *facts.Write) {
	delete(t.all, w.UID)
	t.crown(w.Time)
}

// crown makes the oldest tree the one in force, if it is valid.
func (t *Trees) crown(now time.Time) {
	if oldest := t.Oldest(); oldest != nil && oldest.Tree != nil && oldest.Tree != t.Now() {
		t.Changes++
		t.set(oldest.Tree, now)
	}
}

// Oldest returns the tree that counts, or nil.
func (t *Trees) Oldest() *Tree {
	var oldest *Tree
	for _, other := range t.all {
		if oldest == nil || cmp.Or(cmp.Compare(other.Created, oldest.Created), cmp.Compare(other.name, oldest.name)) < 0 {
			oldest = other
		}
	}
	return oldest
}

// QuotaObject is a ResourceQuota. A version that is nil is its deletion.
type QuotaObject struct {
	History[*facts.Quota]
	UID, Name string
}

// applyQuota applies a write of a ResourceQuota; nil deletes it.
func (s *State) applyQuota(write *facts.Write, now *facts.Quota) {
	all := s.Quotas[write.Namespace]
	at := slices.IndexFunc(all, func(q *QuotaObject) bool { return q.UID == write.UID })
	if at < 0 {
		q := &QuotaObject{UID: write.UID, Name: write.Name}
		if write.Creates() {
			q.set(nil, time.Time{})
		}
		at, all = len(all), append(all, q)
		s.Quotas[write.Namespace] = all
	}
	if write.Gone {
		now = nil
	}
	q := all[at]
	if n := len(q.versions); n > 0 && q.Now().Same(now) {
		q.versions[n-1].value = now
		return
	}
	q.set(now, write.Time)
}

// LimitsPods reports whether the quota has ever limited pods.
func (q *QuotaObject) LimitsPods() bool {
	return slices.ContainsFunc(q.versions, func(v version[*facts.Quota]) bool { return v.value != nil && len(v.value.Limits) > 0 })
}
