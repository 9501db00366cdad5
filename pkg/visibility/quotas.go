package visibility

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	visibilityv1alpha1 "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/spelling"
)

// Quotas returns how the quotas are used. namespace is the namespace of the question. The error is for the caller.
func (m *Model) Quotas(namespace string, spec visibilityv1alpha1.QuotaReviewSpec, access Access) (*visibilityv1alpha1.QuotaReviewStatus, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if err := checkLength("quota", spec.Quota, longestPath); err != nil {
		return nil, err
	}
	if err := checkPage(spec.Limit, spec.Offset); err != nil {
		return nil, err
	}
	answer := &visibilityv1alpha1.QuotaReviewStatus{ObservedTime: m.observed()}
	if m.view.Backend == nil {
		if m.view.Missing != nil {
			return nil, Missing{fmt.Errorf("no quota is in force: %s", m.view.Missing.Message())}
		}
		return nil, Missing{errors.New("no quota is in force")}
	}
	shown := func(string) bool { return true }
	if tree, is := m.view.Backend.(interface{ Note() string }); is && access.Trees() {
		if note := tree.Note(); note != "" {
			answer.Message = strings.ToUpper(note[:1]) + note[1:]
		}
	}
	if !access.Trees() {
		own := m.pathsOf(namespace)
		shown = func(path string) bool {
			return slices.ContainsFunc(own, func(p string) bool { return p == path || strings.HasPrefix(p, path+"/") })
		}
	}
	var paths []string
	var listed []int
	found := spec.Quota == ""
	for i, n := range m.view.Usage {
		if n.Path == "" {
			continue
		}
		if !shown(n.Path) {
			answer.Hidden++
			continue
		}
		paths = append(paths, n.Path)
		if spec.Quota != "" && n.Path != spec.Quota && !strings.HasPrefix(n.Path, spec.Quota+"/") {
			continue
		}
		found = true
		listed = append(listed, i)
	}
	if !found {
		if meant := spelling.NearestPath(spec.Quota, paths); meant != "" {
			return nil, Missing{fmt.Errorf("quota %q does not exist; did you mean %q?", spec.Quota, meant)}
		}
		return nil, Missing{fmt.Errorf("quota %q does not exist; give its path from the root, such as root/team", spec.Quota)}
	}
	nodes := m.nodes()
	answer.Quotas, answer.Total = page(listed, spec.Limit, spec.Offset, func(i int) visibilityv1alpha1.QuotaSummary {
		return m.quota(&m.view.Usage[i], &nodes[i])
	})
	return answer, nil
}

// pathsOf returns the paths of the quotas that the units of a namespace use, and of its default quota.
func (m *Model) pathsOf(namespace string) (paths []string) {
	if group, refusal := m.view.Backend.Place(namespace, ""); refusal == nil {
		paths = append(paths, group.Path())
	}
	seen := make([]bool, len(m.view.Queues))
	for i := range m.view.Units {
		if u := &m.view.Units[i]; u.Queue >= 0 && !seen[u.Queue] && namespaceOf(u.Key) == namespace {
			seen[u.Queue] = true
			paths = append(paths, m.view.Queues[u.Queue].Quota)
		}
	}
	return paths
}

// nodeSums is what is known about a node besides its usage.
type nodeSums struct {
	queue            string
	waiting, holding int32
	requested        map[resources.ID]int64
}

// computeNodes returns the sums of all nodes, by their IDs.
func (m *Model) computeNodes() []nodeSums {
	nodes := make([]nodeSums, len(m.view.Usage))
	all := m.sums()
	at := make(map[string]quota.NodeID, len(nodes))
	for i, n := range m.view.Usage {
		at[n.Path] = quota.NodeID(i)
	}
	for q := range m.view.Queues {
		v := &m.view.Queues[q]
		for depth, id := range v.Nodes {
			if depth == 0 { // a backend without levels can aggregate its usage by path
				var known bool
				if id, known = at[v.Quota]; !known {
					continue
				}
			}
			n := &nodes[id]
			if depth == 0 {
				n.queue = v.Name
			}
			n.waiting += int32(v.Pending)
			n.holding += int32(v.Reserved + v.Dequeued + v.Running)
			if n.requested == nil {
				n.requested = map[resources.ID]int64{}
			}
			for _, a := range all[q].requested {
				n.requested[a.ID] = resources.AddTimes(n.requested[a.ID], a.Value, 1)
			}
		}
	}
	return nodes
}

func (m *Model) quota(u *quota.NodeUsage, n *nodeSums) visibilityv1alpha1.QuotaSummary {
	s := visibilityv1alpha1.QuotaSummary{Path: u.Path, Queue: n.queue, Min: m.quantities(u.Min), Max: m.quantities(u.Max),
		Used: m.quantities(u.Used.With(m.view.Names.ID(quota.JobsResource), u.Jobs)), Borrowed: m.quantities(u.Borrowed), Lent: m.quantities(m.loans().Lent(u)),
		Unqueued: m.quantities(u.Unqueued), Requested: m.list(vector(n.requested)), Waiting: n.waiting, Holding: n.holding}
	return s
}
