package facts

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"
)

// order sorts the writes by revision. Writes without a revision of their own get one as described
// in the package comment.
func (l *Log) order() {
	first, last := map[string]int64{}, map[string]int64{} // by UID
	var timed []*Write
	for _, w := range l.Writes {
		// A cluster may store its events in another etcd, with another sequence of versions.
		if _, event := w.Body.(*Event); !w.Own || event {
			continue
		}
		timed = append(timed, w)
		if !w.Gone {
			last[w.UID] = max(last[w.UID], w.Revision)
		}
		if first[w.UID] == 0 || w.Revision < first[w.UID] {
			first[w.UID] = w.Revision
		}
	}
	slices.SortStableFunc(timed, func(a, b *Write) int { return a.Time.Compare(b.Time) })
	highest := make([]int64, len(timed)) // highest revision of the writes up to each one
	for i, w := range timed {
		highest[i] = w.Revision
		if i > 0 {
			highest[i] = max(highest[i], highest[i-1])
		}
	}
	// upTo returns the highest revision that was complete at a time.
	upTo := func(at time.Time) int64 {
		i := sort.Search(len(timed), func(i int) bool { return timed[i].Time.After(at) })
		if i == 0 {
			return 0
		}
		return highest[i-1]
	}
	// A write that changes nothing returns the revision of an earlier write.
	changes := slices.DeleteFunc(slices.Clone(timed), func(w *Write) bool { return w.Revision <= upTo(w.Received) })
	before := beforeAllRequestedLater(changes)
	for _, w := range l.Writes {
		about, event := w.Body.(*Event)
		if w.Own && !event && (!w.Gone || w.Revision > last[w.UID]) {
			if w.endsPod() {
				w.Revision = min(w.Revision, max(last[w.UID], before(w.Received)))
			}
			// At least that of all writes before its request, also if it changes nothing.
			w.Revision = max(w.Revision, upTo(w.Received))
			continue
		}
		if w.Landed {
			// The write was stored when it was aborted, or just before.
			w.Revision = upTo(w.Time)
			continue
		}
		w.Own = false
		w.Revision = max(last[w.UID], upTo(w.Received))
		if event {
			// A watch may show an object before its creation is answered.
			w.Revision = max(w.Revision, first[about.UID])
		}
	}
	slices.SortStableFunc(l.Writes, func(a, b *Write) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), ownFirst(a, b), a.Time.Compare(b.Time), cmp.Compare(a.Line, b.Line))
	})
}

// beforeAllRequestedLater returns a function that returns the highest revision that is lower than those of all writes
// that were requested after a time.
func beforeAllRequestedLater(writes []*Write) func(time.Time) int64 {
	sorted := slices.SortedStableFunc(slices.Values(writes), func(a, b *Write) int { return a.Received.Compare(b.Received) })
	lowest := make([]int64, len(sorted)+1) // lowest revision of the writes from each one on
	lowest[len(sorted)] = math.MaxInt64
	for i, w := range slices.Backward(sorted) {
		lowest[i] = min(w.Revision, lowest[i+1])
	}
	return func(at time.Time) int64 {
		return lowest[sort.Search(len(sorted), func(i int) bool { return sorted[i].Received.After(at) })] - 1
	}
}

// endsPod reports whether the write removes a pod. The API server first stores that its grace period is over, and
// from then on nobody counts the pod, but the log contains only the revision of the removal.
func (w *Write) endsPod() bool { return w.Gone && w.Resource == "pods" && w.Verb == "delete" }

func ownFirst(a, b *Write) int {
	switch {
	case a.Own == b.Own:
		return 0
	case a.Own:
		return -1
	default:
		return 1
	}
}
