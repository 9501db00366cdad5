package checks

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"kube-queue.dev/kube-queue/test/audit/facts"
	"kube-queue.dev/kube-queue/test/audit/state"
)

// ErrNoTree is returned if there is no valid tree whose status could be compared.
var ErrNoTree = errors.New("the log ends without a valid quota tree")

// Accounting compares the status of the quota tree in force at the end of the log with the
// sums over all units and their pods, and lists the differences node by node. While they change, the
// status may be behind.
func Accounting(l *facts.Log, options facts.Options) ([]string, error) {
	o, err := options.Complete()
	if err != nil {
		return nil, err
	}
	s := state.Replay(l, o, func(*state.State, *state.Change) {})
	counts := s.Trees.Oldest()
	if counts == nil || counts.Tree == nil {
		return nil, ErrNoTree
	}
	if counts.Shown.ObservedGeneration != counts.Generation {
		return []string{fmt.Sprintf("the status has observedGeneration %d, but the tree has generation %d", counts.Shown.ObservedGeneration, counts.Generation)}, nil
	}
	sums := usageOf(s, counts.Tree, s.Charges("", func(p *state.Pod) bool { return state.Requesting(p) && !s.Unseen(p, s.End, 0) }))
	waiting := waitingIn(s, counts.Tree)
	var wrong []string
	shown := map[string]facts.NodeStatus{}
	for _, n := range counts.Shown.Nodes {
		if _, twice := shown[n.Path]; twice {
			wrong = append(wrong, fmt.Sprintf("node %s: listed twice in the status", n.Path))
		}
		shown[n.Path] = n
	}
	for _, n := range counts.Tree.Nodes {
		status, ok := shown[n.Path]
		delete(shown, n.Path)
		if !ok {
			wrong = append(wrong, fmt.Sprintf("node %s: missing in the status", n.Path))
			continue
		}
		for _, difference := range compareNode(status, sums.used[n], waiting[n]) {
			wrong = append(wrong, fmt.Sprintf("node %s: %s", n.Path, difference))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(shown)) {
		wrong = append(wrong, fmt.Sprintf("node %s: listed in the status, but not in the tree", path))
	}
	return wrong, nil
}

// waitingIn sums the requests of queued units, node by node. A unit without a group is in no queue.
func waitingIn(s *state.State, t *facts.Tree) map[*facts.Node]facts.Amounts {
	waiting := map[*facts.Node]facts.Amounts{}
	for _, u := range s.Units {
		if !u.Exists() || !u.Facts.Waits(s.End) {
			continue
		}
		group, err := t.Group(s.Place(u))
		for n := group; err == nil && n != nil; n = n.Parent {
			if waiting[n] == nil {
				waiting[n] = facts.Amounts{}
			}
			waiting[n].AddTimes(u.Facts.Total, 1)
		}
	}
	return waiting
}

// compareNode lists the differences between the status of a node and the sums.
func compareNode(status facts.NodeStatus, used, waiting facts.Amounts) []string {
	var wrong []string
	if jobs := used[facts.MaxJobs]; jobs != status.Jobs {
		wrong = append(wrong, fmt.Sprintf("jobs: %d in the status, %d counted", status.Jobs, jobs))
	}
	delete(used, facts.MaxJobs)
	request := maps.Clone(used)
	request.AddTimes(waiting, 1)
	for _, of := range []struct {
		what    string
		shown   facts.Quantities
		counted facts.Amounts
	}{{"used", status.Used, used}, {"request", status.Request, request}} {
		shown, err := of.shown.Ceil()
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %v", of.what, err))
		} else if difference := shown.Differences(of.counted, "status", "counted"); difference != "" {
			wrong = append(wrong, of.what+": "+difference)
		}
	}
	return wrong
}
