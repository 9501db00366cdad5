package checks

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/test/audit/model"
)

// ErrNoTree is returned if there is no valid tree whose status could be compared.
var ErrNoTree = errors.New("the log ends without a valid quota tree")

// Accounting compares the status of the quota tree in force at the end of the log with the
// sums over all units and their pods, and lists the differences node by node. While they change, the
// status may be behind.
func Accounting(l *model.Log, options model.Options) ([]string, error) {
	o, err := options.Complete()
	if err != nil {
		return nil, err
	}
	w := l.Replay(o, func(*model.World, *model.Change) {})
	counts := w.Forest.Oldest()
	if counts == nil || counts.Facts.Tree == nil {
		return nil, ErrNoTree
	}
	if counts.Shown.ObservedGeneration != counts.Generation {
		return []string{fmt.Sprintf("the status has observedGeneration %d, but the tree has generation %d", counts.Shown.ObservedGeneration, counts.Generation)}, nil
	}
	reigns := w.Forest.Reigns
	used := w.UsageOf(reigns[len(reigns)-1])
	above := used.Above(w.Growths(w.Seen(w.End, 0)))
	requested := waitingIn(w, used)
	var wrong []string
	shown := map[string]model.NodeStatus{}
	for _, s := range counts.Shown.Nodes {
		if _, twice := shown[s.Path]; twice {
			wrong = append(wrong, fmt.Sprintf("node %s: listed twice in the status", s.Path))
		}
		shown[s.Path] = s
	}
	for _, n := range used.Tree.Nodes {
		s, ok := shown[n.Path]
		delete(shown, n.Path)
		if !ok {
			wrong = append(wrong, fmt.Sprintf("node %s: missing in the status", n.Path))
			continue
		}
		for _, difference := range compareNode(s, n, used.Taken[n], above[n], requested[n]) {
			wrong = append(wrong, fmt.Sprintf("node %s: %s", n.Path, difference))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(shown)) {
		wrong = append(wrong, fmt.Sprintf("node %s: listed in the status, but not in the tree", path))
	}
	return wrong, nil
}

// waitingIn sums the requests of queued units, node by node.
func waitingIn(w *model.World, u *model.Usage) map[*model.Node]model.Amounts {
	requested := map[*model.Node]model.Amounts{}
	for _, waiting := range w.Units {
		held := &model.Claim{Unit: waiting, Job: w.JobOf(waiting)}
		if !waiting.Gone.IsZero() || !waiting.Facts.Waits(w.End) || held.Job != nil && w.Claims[held.Job.UID] != nil {
			continue
		}
		demanded, at := model.Demand(held)
		// A unit without a group is in no queue.
		group, err := u.Tree.Group(at.Namespace, at.QuotaName)
		for n := group; err == nil && n != nil; n = n.Parent {
			if requested[n] == nil {
				requested[n] = model.Amounts{}
			}
			requested[n].AddTimes(demanded, 1)
		}
	}
	return requested
}

// compareNode lists the differences between the status of a node and its units and pods.
func compareNode(s model.NodeStatus, n *model.Node, taken, above, requested model.Amounts) []string {
	used, borrowed, request := model.Amounts{}, model.Amounts{}, model.Amounts{}
	used.AddTimes(taken, 1)
	used.AddTimes(above, 1)
	jobs := used.Get(model.MaxJobs)
	delete(used, model.MaxJobs)
	for name, guaranteed := range n.Guarantee {
		if above := new(big.Int).Sub(used.Get(name), guaranteed); above.Sign() > 0 && n.Parent != nil {
			borrowed[name] = above
		}
	}
	request.AddTimes(used, 1)
	request.AddTimes(requested, 1)
	var wrong []string
	if jobs.Cmp(big.NewInt(s.Jobs)) != 0 {
		wrong = append(wrong, fmt.Sprintf("jobs: %d in the status, %s counted", s.Jobs, jobs))
	}
	for _, of := range []struct {
		what    string
		shown   model.Quantities
		counted model.Amounts
	}{{"used", s.Used, used}, {"borrowed", s.Borrowed, borrowed}, {"request", s.Request, request}} {
		shown, err := of.shown.Ceil()
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %v", of.what, err))
			continue
		}
		if difference := shown.Differences(of.counted, "status", "counted"); difference != "" {
			wrong = append(wrong, of.what+": "+strings.TrimSpace(difference))
		}
	}
	return wrong
}
