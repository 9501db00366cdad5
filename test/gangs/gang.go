package gangs

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Gang is a set of pods that make progress only together.
type Gang struct {
	Name      string
	Namespace string
	// Selector is a label selector of its pods.
	Selector string
	// Pods is the number of pods that it needs.
	Pods int
}

// Rule is a rule for the attempts of a gang.
type Rule string

// The rules. The comment of the package defines them.
const (
	Unschedulable Rule = "Unschedulable"
	LateCapacity  Rule = "LateCapacity"
	Incomplete    Rule = "Incomplete"
)

// Violation is an instant at which a gang was partly running.
type Violation struct {
	Gang string
	Rule Rule
	// At is when the watch showed it.
	At time.Time
	// Pod is the pod without capacity, if it is known.
	Pod string
	// Bound are the pods of the attempt that had a node, in order.
	Bound []string
	// Detail describes what the rule found.
	Detail string
}

func (v Violation) String() string {
	return fmt.Sprintf("gang %s is partly running at %s: %s: %s; pods with nodes: %s",
		v.Gang, v.At.Format("15:04:05.000"), v.Rule, v.Detail, strings.Join(v.Bound, ", "))
}

// member matches the pods of a gang.
type member struct {
	Gang
	selector labels.Selector
}

func newMember(gang Gang) (member, error) {
	selector, err := labels.Parse(gang.Selector)
	if err != nil {
		return member{}, fmt.Errorf("the selector of gang %s: %w", gang.Name, err)
	}
	if gang.Selector == "" || gang.Pods < 1 {
		return member{}, fmt.Errorf("gang %s needs a selector and at least one pod", gang.Name)
	}
	return member{gang, selector}, nil
}

func (m member) has(pod *corev1.Pod) bool {
	return pod.Namespace == m.Namespace && m.selector.Matches(labels.Set(pod.Labels))
}
