package access

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/pkg/plugin/reviews"
	"kube-queue.dev/kube-queue/pkg/requests"
)

// measured reads the objects of the cluster that determine what a job requests. It treats objects that the caller may
// not read as missing, and records their kinds.
type measured struct {
	*Cluster
	ctx context.Context
	// hidden are the kinds of objects that could not be read.
	hidden map[string]bool
	// classes are the PriorityClasses, once they are read.
	classes *priorityClasses
	ranges  map[string][]*corev1.LimitRange
	// claims is true if a job has claims.
	claims bool
}

type priorityClasses struct {
	values      map[string]int32
	defaultName string
}

func (c *Cluster) measure(ctx context.Context) *measured {
	return &measured{Cluster: c, ctx: ctx, hidden: map[string]bool{}, ranges: map[string][]*corev1.LimitRange{}}
}

// note records that objects could not be read.
func (m *measured) note(err error, what string) {
	if err != nil && !IsMissingObject(err) && !reviews.IsNotServed(err) {
		m.hidden[what] = true
	}
}

func (m *measured) read() *priorityClasses {
	if m.classes != nil {
		return m.classes
	}
	m.classes = &priorityClasses{values: map[string]int32{}}
	list, err := m.Core.SchedulingV1().PriorityClasses().List(m.ctx, metav1.ListOptions{})
	m.note(err, "PriorityClasses")
	if err == nil {
		for i := range list.Items {
			class := &list.Items[i]
			m.classes.values[class.Name] = class.Value
			if class.GlobalDefault {
				m.classes.defaultName = class.Name
			}
		}
	}
	return m.classes
}

// Value returns the value of a PriorityClass. If PriorityClasses cannot be read, it is 0.
func (m *measured) Value(name string) (int32, bool) {
	value, found := m.read().values[name]
	return value, found || m.hidden["PriorityClasses"]
}

// Default returns the default PriorityClass.
func (m *measured) Default() (string, int32, bool) {
	classes := m.read()
	return classes.defaultName, classes.values[classes.defaultName], classes.defaultName != ""
}

// RuntimeClass returns a RuntimeClass.
func (m *measured) RuntimeClass(name string) (*nodev1.RuntimeClass, bool) {
	class, err := m.Core.NodeV1().RuntimeClasses().Get(m.ctx, name, metav1.GetOptions{})
	m.note(err, "RuntimeClasses")
	if err != nil && m.hidden["RuntimeClasses"] {
		return &nodev1.RuntimeClass{}, true
	}
	return class, err == nil
}

// LimitRanges returns the LimitRanges of a namespace.
func (m *measured) LimitRanges(namespace string) []*corev1.LimitRange {
	if known, is := m.ranges[namespace]; is {
		return known
	}
	list, err := m.Core.CoreV1().LimitRanges(namespace).List(m.ctx, metav1.ListOptions{})
	m.note(err, "LimitRanges")
	m.ranges[namespace] = nil
	if err == nil {
		for i := range list.Items {
			m.ranges[namespace] = append(m.ranges[namespace], &list.Items[i])
		}
	}
	return m.ranges[namespace]
}

// Rules returns no rules: the administrator's rules are settings of job-extensions. Claims count as 0, and are
// recorded.
func (m *measured) Rules() requests.Rules {
	return requests.Rules{Uncounted: func() { m.claims = true }}
}

// ClaimTemplate returns the claim of a ResourceClaimTemplate.
func (m *measured) ClaimTemplate(namespace, name string) (*resourcev1.ResourceClaimSpec, bool) {
	template, err := m.Core.ResourceV1().ResourceClaimTemplates(namespace).Get(m.ctx, name, metav1.GetOptions{})
	m.note(err, "ResourceClaimTemplates")
	if err != nil {
		return nil, false
	}
	return &template.Spec.Spec, true
}

// Claim returns a ResourceClaim.
func (m *measured) Claim(namespace, name string) (*resourcev1.ResourceClaimSpec, bool) {
	claim, err := m.Core.ResourceV1().ResourceClaims(namespace).Get(m.ctx, name, metav1.GetOptions{})
	m.note(err, "ResourceClaims")
	if err != nil {
		return nil, false
	}
	return &claim.Spec, true
}
