package audit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
)

// ErrNoTree is returned if there is no valid tree whose status could be compared.
var ErrNoTree = errors.New("the log ends without a valid quota tree")

// Accounting compares the status of the quota tree in force at the end of the log with the
// sums over all units and their pods, and lists the differences node by node. While they change, the
// status may be behind.
func (l *Log) Accounting(options Options) ([]string, error) {
	o, err := options.complete()
	if err != nil {
		return nil, err
	}
	s := l.replay(o, func(*world, *change) {})
	oldest := s.trees.oldest()
	if oldest == nil || oldest.tree == nil {
		return nil, ErrNoTree
	}
	if oldest.status.ObservedGeneration != oldest.generation {
		return []string{fmt.Sprintf("the status has observedGeneration %d, but the tree has generation %d", oldest.status.ObservedGeneration, oldest.generation)}, nil
	}
	sums := s.usageOf(oldest.tree, s.charges("", func(p *pod) bool { return requesting(p) && !s.unseen(p, s.end, 0) }))
	waiting := s.waitingIn(oldest.tree)
	var wrong []string
	shown := map[string]quotav1beta1.ElasticQuotaNodeStatus{}
	for _, n := range oldest.status.Nodes {
		if _, twice := shown[n.Path]; twice {
			wrong = append(wrong, fmt.Sprintf("node %s: listed twice in the status", n.Path))
		}
		shown[n.Path] = n
	}
	for _, n := range oldest.tree.nodes {
		status, ok := shown[n.path]
		delete(shown, n.path)
		if !ok {
			wrong = append(wrong, fmt.Sprintf("node %s: missing in the status", n.path))
			continue
		}
		for _, difference := range compareNode(status, sums.used[n], waiting[n]) {
			wrong = append(wrong, fmt.Sprintf("node %s: %s", n.path, difference))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(shown)) {
		wrong = append(wrong, fmt.Sprintf("node %s: listed in the status, but not in the tree", path))
	}
	return wrong, nil
}

// notAsking are the reasons of queued units that do not wait for quota.
var notAsking = []string{"Inactive", "SuspendedByUser", "InvalidRequest", "QueueStopped", "JobChanged", "Terminating", "AdmissionCheckMissing", "AdmissionCheckRejected"}

// waitingIn sums the requests of queued units, node by node. A unit without a group is in no queue.
func (s *world) waitingIn(t *tree) map[*node]amounts {
	waiting := map[*node]amounts{}
	for _, u := range s.units {
		backoff := u.now.Status.RequeueState != nil && u.now.Status.RequeueState.RequeueAt != nil && s.end.Before(u.now.Status.RequeueState.RequeueAt.Time)
		asks := u.exists() && u.now.queued() && u.now.active() && u.now.bad == "" && !slices.Contains(notAsking, string(u.now.Status.Reason))
		if !asks || backoff {
			continue
		}
		group, err := t.group(s.place(u))
		for n := group; err == nil && n != nil; n = n.parent {
			if waiting[n] == nil {
				waiting[n] = amounts{}
			}
			waiting[n].addTimes(u.now.total, 1)
		}
	}
	return waiting
}

// compareNode lists the differences between the status of a node and the sums.
func compareNode(status quotav1beta1.ElasticQuotaNodeStatus, used, waiting amounts) (wrong []string) {
	if jobs := used[maxJobs]; jobs != int64(status.Jobs) {
		wrong = append(wrong, fmt.Sprintf("jobs: %d in the status, %d counted", status.Jobs, jobs))
	}
	delete(used, maxJobs)
	request := maps.Clone(used)
	request.addTimes(waiting, 1)
	for _, of := range []struct {
		what    string
		shown   corev1.ResourceList
		counted amounts
	}{{"used", status.Used, used}, {"request", status.Request, request}} {
		shown := amountsOf(of.shown)
		all := maps.Clone(shown)
		maps.Copy(all, of.counted)
		var differences []string
		for _, name := range all.names() {
			if shown[name] != of.counted[name] {
				differences = append(differences, fmt.Sprintf("%s: status %s, counted %s", name, figure(name, shown[name]), figure(name, of.counted[name])))
			}
		}
		if differences != nil {
			wrong = append(wrong, of.what+": "+strings.Join(differences, "; "))
		}
	}
	return wrong
}
