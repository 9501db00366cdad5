package gangs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// attempt is one life of a gang's pods.
type attempt struct {
	gang Gang
	pods map[types.UID]*pod
	// started is the resourceVersion of the first pod that was bound.
	started string
	// since is the time at which the watch showed it.
	since time.Time
}

// pod is what is known of a pod.
type pod struct {
	name, node string
	spec       *corev1.PodSpec
	// bound is the resourceVersion at which the pod first had a node.
	bound   string
	running bool
	// refused is the scheduler's message if it finds no node. refusedAt is the first version with this message.
	refused, refusedAt string
	// ended: the pod is gone or will not run any more.
	ended, gone bool
	// reported: the pod was reported as unschedulable, or suspected to be.
	reported bool
	// suspected is the violation for a refusal that is older than the first binding. A refusal stays in the status
	// until the pod is bound, so it may mean nothing.
	suspected *Violation
}

func newAttempt(gang Gang) *attempt { return &attempt{gang: gang, pods: map[types.UID]*pod{}} }

// see processes a version of a pod.
func (a *attempt) see(now time.Time, object *corev1.Pod) []Violation {
	p := a.pods[object.UID]
	if p == nil {
		p = &pod{name: object.Name}
		a.pods[object.UID] = p
	}
	if p.node == "" && object.Spec.NodeName != "" {
		p.node, p.bound, p.spec = object.Spec.NodeName, object.ResourceVersion, &object.Spec
		if a.started == "" || before(p.bound, a.started) {
			a.started, a.since = p.bound, now
		}
	}
	p.ended = object.Status.Phase == corev1.PodSucceeded || object.Status.Phase == corev1.PodFailed
	p.running = object.Status.Phase == corev1.PodRunning && object.DeletionTimestamp == nil
	was := p.refused
	p.refused = ""
	if object.Spec.NodeName == "" && object.DeletionTimestamp == nil && !p.ended {
		p.refused = refusal(object)
	}
	if p.refused != was {
		p.refusedAt = object.ResourceVersion
	}
	return a.unschedulable(now)
}

// end processes the end of a pod that is gone.
func (a *attempt) end(uid types.UID) {
	if p := a.pods[uid]; p != nil {
		p.ended, p.gone, p.running, p.refused = true, true, false, ""
	}
}

// refusal returns the scheduler's message if it finds no node for the pod.
func refusal(object *corev1.Pod) string {
	for _, condition := range object.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && condition.Reason == corev1.PodReasonUnschedulable {
			return "unschedulable: " + condition.Message
		}
	}
	return ""
}

// over reports whether the next pod belongs to another attempt. Pods may end by themselves before the last pod of
// their attempt is created.
func (a *attempt) over() bool {
	broken := false
	for _, p := range a.pods {
		if !p.ended {
			return false
		}
		broken = broken || p.gone
	}
	return broken || len(a.bound()) >= a.gang.Pods
}

func (a *attempt) running() bool {
	for _, p := range a.pods {
		if p.running {
			return true
		}
	}
	return false
}

// bound returns the pods that have had a node, in the order in which they got it.
func (a *attempt) bound() []*pod {
	var all []*pod
	for _, p := range a.pods {
		if p.bound != "" {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(x, y *pod) int {
		order, _ := resourceversion.CompareResourceVersion(x.bound, y.bound) // invalid versions are equal
		return order
	})
	return all
}

func (a *attempt) unschedulable(now time.Time) []Violation {
	var found []Violation
	if !a.running() {
		return nil
	}
	for _, p := range a.pods {
		if p.refused == "" || p.reported {
			continue
		}
		p.reported = true
		v := a.violation(Unschedulable, now, p.name, fmt.Sprintf("pod %s is %s", p.name, p.refused))
		if before(p.refusedAt, a.started) {
			p.suspected = &v
			continue
		}
		found = append(found, v)
	}
	return found
}

// judge checks the rules that concern the complete attempt.
func (a *attempt) judge(rooms *rooms) []Violation {
	bound := a.bound()
	if len(bound) == 0 {
		return nil
	}
	var found []Violation
	for _, p := range bound[:min(len(bound), a.gang.Pods)] {
		switch room := rooms.nodes[p.node]; {
		case room == nil:
			found = append(found, a.violation(LateCapacity, a.since, p.name, fmt.Sprintf("pod %s has node %s, which was never usable", p.name, p.node)))
		case before(a.started, room.usable):
			found = append(found, a.violation(LateCapacity, a.since, p.name,
				fmt.Sprintf("pod %s has node %s, which was not usable when the first pod got its node", p.name, p.node)))
		}
	}
	if len(found) == 0 && !rooms.fit(a.started, bound[:min(len(bound), a.gang.Pods)]) {
		found = append(found, a.violation(LateCapacity, a.since, "", "when the first pod got its node, the nodes had no room for all pods"))
	}
	found = append(a.suspects(len(found) > 0), found...)
	if len(bound) < a.gang.Pods {
		found = append(found, a.violation(Incomplete, a.since, "", fmt.Sprintf("%d of %d pods have had a node", len(bound), a.gang.Pods)))
	}
	return found
}

// suspects returns the suspected violations of the pods without a node, or of all pods if the attempt was bound
// without room.
func (a *attempt) suspects(all bool) []Violation {
	var found []Violation
	for _, p := range a.pods {
		if p.suspected != nil && (all || p.bound == "") {
			found = append(found, *p.suspected)
		}
	}
	slices.SortFunc(found, func(x, y Violation) int { return strings.Compare(x.Pod, y.Pod) })
	return found
}

func (a *attempt) violation(rule Rule, at time.Time, pod, detail string) Violation {
	v := Violation{Gang: a.gang.Name, Rule: rule, At: at, Pod: pod, Detail: detail}
	for _, p := range a.bound() {
		v.Bound = append(v.Bound, p.name)
	}
	return v
}

// before reports whether a version is older than another. An invalid version is never older.
func before(x, y string) bool {
	order, err := resourceversion.CompareResourceVersion(x, y)
	return err == nil && order < 0
}
