package facts

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// A ResourceQuota counts the pods of its namespace that match all its scopes. This file has the
// rules of the API server: what each key counts, and which pods match a scope.

// Quota describes a ResourceQuota after a write.
type Quota struct {
	scopes []corev1.ScopedResourceSelectorRequirement
	Limits []QuotaLimit // those on pods, sorted by key
}

// QuotaLimit is the limit of a quota for one key.
type QuotaLimit struct {
	Key string
	Of  string // the key of a load that it limits
	// Hard is the lower value of spec and status.
	Hard int64
	// Unknown: the status does not contain the key yet.
	Unknown bool
}

func parseResourceQuota(kind string, _ *meta, raw json.RawMessage) (any, error) {
	if kind != "ResourceQuota" {
		return nil, nil
	}
	var o corev1.ResourceQuota
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, err
	}
	q := &Quota{}
	if o.Spec.ScopeSelector != nil {
		q.scopes = o.Spec.ScopeSelector.MatchExpressions
	}
	for _, name := range o.Spec.Scopes {
		q.scopes = append(q.scopes, corev1.ScopedResourceSelectorRequirement{ScopeName: name, Operator: corev1.ScopeSelectorOpExists})
	}
	keys := maps.Clone(o.Spec.Hard)
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
		q.Limits = append(q.Limits, QuotaLimit{Key: word(string(key)), Of: word(of), Hard: baseUnits(string(key), exact(hard), false), Unknown: !decided || !used})
	}
	return q, nil
}

// Keys of a load for numbers of pods: pods that have not ended, and all pods.
const (
	livePods = "pods"
	allPods  = "count/pods"
)

// counts returns what a key counts, for example "requests.cpu" for "cpu", and whether the key is
// about pods.
func counts(key string) (of string, pods bool) {
	if key == livePods || key == allPods {
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

// Same reports whether the quotas are equal except for the used amounts.
func (q *Quota) Same(other *Quota) bool { return reflect.DeepEqual(q, other) }

// Matches reports whether the quota counts pods of a class.
func (q *Quota) Matches(c Class) bool {
	return !slices.ContainsFunc(q.scopes, func(s corev1.ScopedResourceSelectorRequirement) bool { return !holds(s, c) })
}

func holds(s corev1.ScopedResourceSelectorRequirement, c Class) bool {
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

// Weigh returns what one limit of the quota counts in a load.
func (q *Quota) Weigh(limit *QuotaLimit, l Load) (sum int64) {
	for c, counted := range l {
		if n, ok := counted[limit.Of]; ok && q.Matches(c) {
			sum += n
		}
	}
	return sum
}

// Limit returns the limit for a key, or nil.
func (q *Quota) Limit(key string) *QuotaLimit {
	if q == nil {
		return nil
	}
	for i := range q.Limits {
		if q.Limits[i].Key == key {
			return &q.Limits[i]
		}
	}
	return nil
}
