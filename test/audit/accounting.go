package audit

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
)

// ErrNoTree is returned where there is no valid tree of which the status could
// tell anything.
var ErrNoTree = errors.New("the log ends without a valid quota tree")

// accounting holds the status of the tree that counts, as it is at the end of the
// log, against the sums of what the units hold and ask for. It lists where they
// differ, node by node. While units come and go the status may be behind.
func accounting(l *history, options Options) ([]string, error) {
	o, err := options.complete()
	if err != nil {
		return nil, err
	}
	w := l.replay(o, func(*world, *change) {})
	counts := w.forest.oldest()
	if counts == nil || counts.facts.tree == nil {
		return nil, ErrNoTree
	}
	if counts.shown.ObservedGeneration != counts.generation {
		return []string{fmt.Sprintf("the status is of generation %d, the tree of %d", counts.shown.ObservedGeneration, counts.generation)}, nil
	}
	reigns := w.forest.reigns
	used := w.usageOf(reigns[len(reigns)-1])
	asked := waitingIn(w, used)
	var wrong []string
	shown := map[string]nodeStatus{}
	for _, s := range counts.shown.Nodes {
		if _, twice := shown[s.Path]; twice {
			wrong = append(wrong, fmt.Sprintf("node %s: shown twice", s.Path))
		}
		shown[s.Path] = s
	}
	for _, n := range used.tree.nodes {
		s, ok := shown[n.path]
		delete(shown, n.path)
		if !ok {
			wrong = append(wrong, fmt.Sprintf("node %s: not shown", n.path))
			continue
		}
		for _, difference := range compareNode(s, n, used.taken[n], asked[n]) {
			wrong = append(wrong, fmt.Sprintf("node %s: %s", n.path, difference))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(shown)) {
		wrong = append(wrong, fmt.Sprintf("node %s: shown, and not in the tree", path))
	}
	return wrong, nil
}

// waitingIn sums what the units in line ask for, node by node.
func waitingIn(w *world, u *usage) map[*node]amounts {
	asked := map[*node]amounts{}
	for _, waiting := range w.units {
		held := &claim{unit: waiting, job: w.jobOf(waiting)}
		if !waiting.gone.IsZero() || !waiting.facts.inLine(w.end) || held.job != nil && w.claims[held.job.uid] != nil {
			continue
		}
		demanded, at := demand(held)
		// One that belongs to no group stands in no line.
		group, err := u.tree.group(at.namespace, at.quotaName)
		for n := group; err == nil && n != nil; n = n.parent {
			if asked[n] == nil {
				asked[n] = amounts{}
			}
			asked[n].addTimes(demanded, 1)
		}
	}
	return asked
}

// compareNode tells where a node's status is not what its units come to.
func compareNode(s nodeStatus, n *node, taken, asked amounts) []string {
	used, borrowed, request := amounts{}, amounts{}, amounts{}
	used.addTimes(taken, 1)
	jobs := used.get(maxJobs)
	delete(used, maxJobs)
	for name, least := range n.min {
		if above := new(big.Int).Sub(used.get(name), baseUnits(name, least, false)); above.Sign() > 0 {
			borrowed[name] = above
		}
	}
	request.addTimes(used, 1)
	request.addTimes(asked, 1)
	var wrong []string
	if jobs.Cmp(big.NewInt(s.Jobs)) != 0 {
		wrong = append(wrong, fmt.Sprintf("jobs: %d shown, %s counted", s.Jobs, jobs))
	}
	for _, of := range []struct {
		what    string
		shown   quantities
		counted amounts
	}{{"used", s.Used, used}, {"borrowed", s.Borrowed, borrowed}, {"request", s.Request, request}} {
		shown, err := of.shown.ceil()
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %v", of.what, err))
			continue
		}
		if difference := shown.differences(of.counted, "shown", "counted"); difference != "" {
			wrong = append(wrong, of.what+": "+strings.TrimSpace(difference))
		}
	}
	return wrong
}
