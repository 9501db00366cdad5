package audit

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
)

// A ResourceQuota counts the pods of its namespace that match all its scopes. This file has the
// rules of the API server: what each key counts, and which pods match a scope.

// quotaFacts describe a ResourceQuota after a write.
type quotaFacts struct {
	scopes []corev1.ScopedResourceSelectorRequirement
	limits []quotaLimit // those on pods, sorted by key
}

// quotaLimit is the limit of a quota for one key.
type quotaLimit struct {
	key string
	of  string // what the key counts
	// hard is the lower value of spec and status.
	hard int64
	// unknown: the status does not contain the key yet.
	unknown bool
}

func readResourceQuota(_ *metav1.ObjectMeta, raw json.RawMessage) (any, error) {
	var o corev1.ResourceQuota
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, err
	}
	q := &quotaFacts{}
	if o.Spec.ScopeSelector != nil {
		q.scopes = o.Spec.ScopeSelector.MatchExpressions
	}
	for _, name := range o.Spec.Scopes {
		q.scopes = append(q.scopes, corev1.ScopedResourceSelectorRequirement{ScopeName: name, Operator: corev1.ScopeSelectorOpExists})
	}
	keys := corev1.ResourceList{}
	maps.Copy(keys, o.Spec.Hard)
	maps.Copy(keys, o.Status.Hard)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		of, pods := counts(string(key))
		if !pods {
			continue
		}
		hard := keys[key] // of the status, if there is any
		if wanted, ok := o.Spec.Hard[key]; ok && wanted.Cmp(hard) < 0 {
			hard = wanted
		}
		_, decided := o.Status.Hard[key]
		_, used := o.Status.Used[key]
		q.limits = append(q.limits, quotaLimit{string(key), of, floorOf(string(key), exact(hard)), !decided || !used})
	}
	return q, nil
}

// Keys for numbers of pods: pods that have not ended, and all pods.
const (
	livePods = "pods"
	everyPod = "count/pods"
)

// counts returns what a key counts, for example "requests.cpu" for "cpu", and whether the key is
// about pods.
func counts(key string) (of string, pods bool) {
	if key == livePods || key == everyPod {
		return key, true
	}
	if name, ok := strings.CutPrefix(key, "limits."); ok {
		return key, standard(name)
	}
	name, prefixed := strings.CutPrefix(key, "requests.")
	switch {
	case standard(name), strings.HasPrefix(name, "hugepages-"):
		return "requests." + name, true
	default: // an extended resource counts only with a prefix
		return key, prefixed && strings.Contains(name, "/") && !strings.Contains(name, "kubernetes.io/")
	}
}

func standard(name string) bool {
	return name == "cpu" || name == "memory" || name == "ephemeral-storage"
}

// podGroup has pods that count alike: one, or those of a pod set. Amounts are of all of them together. A
// unit without pod sets has a group without a number.
type podGroup struct {
	count            int64
	class            class
	requests, limits amounts
	ended            bool
}

// weigh returns what a limit of the quota counts of some pods. Pods that have ended count only as objects.
func (q *quotaFacts) weigh(limit *quotaLimit, groups ...podGroup) (sum int64) {
	for _, g := range groups {
		request, isRequest := strings.CutPrefix(limit.of, "requests.")
		switch {
		case !q.matches(g.class):
		case limit.of == everyPod:
			sum += g.count
		case g.ended:
		case limit.of == livePods:
			sum += g.count
		case isRequest:
			sum += g.requests[request]
		default:
			sum += g.limits[strings.TrimPrefix(limit.of, "limits.")]
		}
	}
	return sum
}

// limit returns the limit for a key, or nil.
func (q *quotaFacts) limit(key string) *quotaLimit {
	if q == nil {
		return nil
	}
	for i := range q.limits {
		if q.limits[i].key == key {
			return &q.limits[i]
		}
	}
	return nil
}

// class has the properties of a pod that scopes of ResourceQuotas match.
type class struct {
	bestEffort, terminating, crossing bool
	priority                          string
}

func classOfPod(p *corev1.Pod) class {
	var terms []corev1.PodAffinityTerm
	var weighted []corev1.WeightedPodAffinityTerm
	if a := p.Spec.Affinity; a != nil && a.PodAffinity != nil {
		terms, weighted = a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	}
	if a := p.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		terms = append(terms, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted = append(weighted, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	for _, w := range weighted {
		terms = append(terms, w.PodAffinityTerm)
	}
	deadline := p.Spec.ActiveDeadlineSeconds
	return class{
		bestEffort: p.Status.QOSClass == corev1.PodQOSBestEffort, priority: p.Spec.PriorityClassName,
		terminating: deadline != nil && *deadline >= 0,
		crossing:    slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool { return len(t.Namespaces) > 0 || t.NamespaceSelector != nil }),
	}
}

func classOfSet(set schedulingv1alpha1.PodSet) class {
	return class{
		bestEffort:  slices.Contains(set.QuotaScopes, corev1.ResourceQuotaScopeBestEffort),
		terminating: slices.Contains(set.QuotaScopes, corev1.ResourceQuotaScopeTerminating),
		crossing:    slices.Contains(set.QuotaScopes, corev1.ResourceQuotaScopeCrossNamespacePodAffinity),
		priority:    set.PriorityClassName,
	}
}

// matches reports whether the quota counts pods of a class.
func (q *quotaFacts) matches(c class) bool {
	return !slices.ContainsFunc(q.scopes, func(s corev1.ScopedResourceSelectorRequirement) bool { return !c.in(s) })
}

// in reports whether a scope contains the pods.
func (c class) in(s corev1.ScopedResourceSelectorRequirement) bool {
	switch s.ScopeName {
	case corev1.ResourceQuotaScopeBestEffort:
		return c.bestEffort
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !c.bestEffort
	case corev1.ResourceQuotaScopeTerminating:
		return c.terminating
	case corev1.ResourceQuotaScopeNotTerminating:
		return !c.terminating
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return c.crossing
	case corev1.ResourceQuotaScopePriorityClass:
		listed := c.priority != "" && slices.Contains(s.Values, c.priority)
		switch s.Operator {
		case corev1.ScopeSelectorOpExists:
			return c.priority != ""
		case corev1.ScopeSelectorOpDoesNotExist:
			return c.priority == ""
		case corev1.ScopeSelectorOpIn:
			return listed
		case corev1.ScopeSelectorOpNotIn:
			return !listed
		}
	}
	return false
}
