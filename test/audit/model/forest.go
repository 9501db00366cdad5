package model

import (
	"cmp"
	"slices"
	"time"
)

// forest has all trees, and the times in which each was in force. The oldest tree counts. While it
// is invalid, or after all trees are deleted, the last valid one stays in force. Without any tree
// its further use is not checked.
type forest struct {
	trees  map[string]*standing // by UID
	Reigns []*Reign
	// Changes counts how often another tree came into force.
	Changes int
}

type standing struct {
	uid, name string
	Facts     *treeFacts
	// Generation is that of the spec after the last write.
	Generation int64
	Shown      treeStatus
}

// Reign is the time in which one tree was in force.
type Reign struct {
	Tree     *tree
	from, To time.Time // To is zero for the tree in force
	usage    *Usage
}

const treeNamespace = "kube-system"

func (f *forest) apply(w *Write, facts *treeFacts) {
	if w.Namespace != treeNamespace {
		return
	}
	if w.gone {
		f.remove(w)
		return
	}
	if f.trees == nil {
		f.trees = map[string]*standing{}
	}
	s := f.trees[w.UID]
	if s == nil {
		s = &standing{uid: w.UID, name: w.Name}
		f.trees[w.UID] = s
	}
	// A write of the status does not change the spec.
	if s.Facts == nil || w.Subresource == "" {
		s.Facts = facts
	}
	s.Generation, s.Shown = facts.generation, facts.shown
	f.crown(w.Time)
}

func (f *forest) remove(w *Write) {
	if _, ok := f.trees[w.UID]; ok {
		delete(f.trees, w.UID)
		f.crown(w.Time)
	}
}

// crown makes the oldest tree the one in force, if it is valid.
func (f *forest) crown(now time.Time) {
	oldest := f.Oldest()
	if oldest == nil || oldest.Facts.Tree == nil {
		return
	}
	next := oldest.Facts.Tree
	if n := len(f.Reigns); n > 0 {
		last := f.Reigns[n-1]
		if last.Tree == next {
			return
		}
		last.To = now
	}
	f.Changes++
	f.Reigns = append(f.Reigns, &Reign{Tree: next, from: now})
}

// Oldest returns the tree that counts, or nil.
func (f *forest) Oldest() *standing {
	var oldest *standing
	for _, s := range f.trees {
		if oldest == nil || cmp.Or(cmp.Compare(s.Facts.created, oldest.Facts.created), cmp.Compare(s.name, oldest.name)) < 0 {
			oldest = s
		}
	}
	return oldest
}

// Ruling returns the trees that may justify a decision at a time, the one in force first. Programs
// see a change only after a delay of at most lag.
func (f *forest) Ruling(now time.Time, lag time.Duration) []*Reign {
	f.Reigns = slices.DeleteFunc(f.Reigns, func(r *Reign) bool {
		return !r.To.IsZero() && now.Sub(r.To) > lag+time.Minute
	})
	var out []*Reign
	for _, r := range slices.Backward(f.Reigns) {
		if r.To.IsZero() || now.Sub(r.To) <= lag {
			out = append(out, r)
		}
	}
	return out
}
