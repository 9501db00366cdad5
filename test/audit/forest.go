package audit

import (
	"cmp"
	"slices"
	"time"
)

// forest holds all trees, and which of them was in force when. The oldest tree
// counts; while it is invalid, the last good one stays in force. So it does
// when there is no tree any more: whether to go on by it is not judged.
type forest struct {
	trees  map[string]*standing // by UID
	reigns []*reign
	// changes counts the trees that were ever in force.
	changes int
}

type standing struct {
	uid, name string
	facts     *treeFacts
	// generation of the spec, and what the status shows, as of the last write.
	generation int64
	shown      treeStatus
}

// reign is the time in which one tree was in force.
type reign struct {
	tree     *tree
	from, to time.Time // to is zero for the tree in force
	usage    *usage
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
	// A write of the status leaves the spec as it is.
	if s.facts == nil || w.Subresource == "" {
		s.facts = facts
	}
	s.generation, s.shown = facts.generation, facts.shown
	f.crown(w.Time)
}

func (f *forest) remove(w *Write) {
	if _, ok := f.trees[w.UID]; ok {
		delete(f.trees, w.UID)
		f.crown(w.Time)
	}
}

// crown puts the oldest tree in force, if it is valid.
func (f *forest) crown(now time.Time) {
	oldest := f.oldest()
	if oldest == nil || oldest.facts.tree == nil {
		return
	}
	next := oldest.facts.tree
	if n := len(f.reigns); n > 0 {
		last := f.reigns[n-1]
		if last.tree == next {
			return
		}
		last.to = now
	}
	f.changes++
	f.reigns = append(f.reigns, &reign{tree: next, from: now})
}

// oldest is the tree that counts; nil when there is none.
func (f *forest) oldest() *standing {
	var oldest *standing
	for _, s := range f.trees {
		if oldest == nil || cmp.Or(cmp.Compare(s.facts.created, oldest.facts.created), cmp.Compare(s.name, oldest.name)) < 0 {
			oldest = s
		}
	}
	return oldest
}

// ruling are the trees that may justify what is done now, the one in force
// first: a change needs a while to arrive.
func (f *forest) ruling(now time.Time, lag time.Duration) []*reign {
	f.reigns = slices.DeleteFunc(f.reigns, func(r *reign) bool {
		return !r.to.IsZero() && now.Sub(r.to) > lag+time.Minute
	})
	var out []*reign
	for _, r := range slices.Backward(f.reigns) {
		if r.to.IsZero() || now.Sub(r.to) <= lag {
			out = append(out, r)
		}
	}
	return out
}
