package audit

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"
)

// All objects of a cluster get their resourceVersion from one sequence, so writes are sorted by the version that they
// returned, not by line. Some writes returned no version of their own: most deletes, writes that changed nothing, and
// Events, which may be stored elsewhere. They get the earliest possible place: after the last write of their object,
// and after all writes that were complete when their request arrived. Their own completion would be too late: others
// may already have seen the effect, and reused quota would look like an excess. The cost is that nothing is detected
// in the few milliseconds of such a request. The removal of a pod is at most as late as the first write that was
// requested after it. The API server first stores that the grace period is over, and the pod no longer counts from
// then on, but the log has only the version of the removal that follows.

// order sorts the writes by revision, and gives one to those that have none.
func order(writes []*write) {
	first, last := map[string]int64{}, map[string]int64{} // by UID
	var timed []*write
	for _, w := range writes {
		if !w.versioned() {
			continue
		}
		timed = append(timed, w)
		if !w.gone {
			last[w.uid] = max(last[w.uid], w.Revision)
		}
		if first[w.uid] == 0 || w.Revision < first[w.uid] {
			first[w.uid] = w.Revision
		}
	}
	upTo := highestUpTo(timed)
	// A write that changes nothing returns the revision of an earlier write.
	changes := slices.DeleteFunc(slices.Clone(timed), func(w *write) bool { return w.Revision <= upTo(w.received) })
	before := beforeAllRequestedLater(changes)
	for _, w := range writes {
		switch {
		case w.versioned() && (!w.gone || w.Revision > last[w.uid]):
			// The API server first stores that the grace period of a pod is over.
			if w.gone && w.resource == "pods" && w.verb == "delete" {
				w.Revision = min(w.Revision, max(last[w.uid], before(w.received)))
			}
			// The revision is at least that of all writes before the request, even if the write changes nothing.
			w.Revision = max(w.Revision, upTo(w.received))
		default:
			w.own = false
			w.Revision = max(last[w.uid], upTo(w.received))
			if about, is := w.body.(*eventFacts); is {
				// A watch may show an object before the response to its creation.
				w.Revision = max(w.Revision, first[about.uid])
			}
		}
	}
	slices.SortStableFunc(writes, func(a, b *write) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), ownFirst(a, b), a.Time.Compare(b.Time), cmp.Compare(a.Line, b.Line))
	})
}

// versioned reports whether the write returned a version of the sequence. A cluster may store its events in another
// etcd, with another sequence.
func (w *write) versioned() bool {
	_, event := w.body.(*eventFacts)
	return w.own && !event
}

// highestUpTo returns a function that returns the highest revision that was complete at a time. It sorts the writes.
func highestUpTo(writes []*write) func(time.Time) int64 {
	slices.SortStableFunc(writes, func(a, b *write) int { return a.Time.Compare(b.Time) })
	highest := make([]int64, len(writes)+1) // of the writes before each one
	for i, w := range writes {
		highest[i+1] = max(highest[i], w.Revision)
	}
	return func(at time.Time) int64 {
		return highest[sort.Search(len(writes), func(i int) bool { return writes[i].Time.After(at) })]
	}
}

// beforeAllRequestedLater returns a function that returns the highest revision that is lower than those of all writes
// that were requested after a time. It sorts the writes.
func beforeAllRequestedLater(writes []*write) func(time.Time) int64 {
	slices.SortStableFunc(writes, func(a, b *write) int { return a.received.Compare(b.received) })
	lowest := make([]int64, len(writes)+1) // of the writes from each one on
	lowest[len(writes)] = math.MaxInt64
	for i, w := range slices.Backward(writes) {
		lowest[i] = min(w.Revision, lowest[i+1])
	}
	return func(at time.Time) int64 {
		return lowest[sort.Search(len(writes), func(i int) bool { return writes[i].received.After(at) })] - 1
	}
}

func ownFirst(a, b *write) int {
	switch {
	case a.own == b.own:
		return 0
	case a.own:
		return -1
	default:
		return 1
	}
}
