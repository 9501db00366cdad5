package resourcequota

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"kube-queue.dev/kube-queue/pkg/resources"
)

// limits are the limits of one ResourceQuota on pods.
type limits struct {
	name   string
	scopes []corev1.ScopedResourceSelectorRequirement
	// keys are ordered by name.
	keys []limit
	// unknown is a key that has no status in the quota yet; empty if there is none.
	unknown string
}

// limit is the limit of a quota on one key.
type limit struct {
	// key is the name in the quota. known is the name in this package.
	key, known string
	// hard is the lower of the limits in spec and status. used is from the status. Both are in base
	// units.
	hard, used int64
}

// read returns the limits of a ResourceQuota. other maps its keys to the keys that pods count by. The API server uses
// the limits in the status. While they lag behind the spec, the lower limits apply here.
func read(object *corev1.ResourceQuota, other map[string]string) *limits {
	l := &limits{name: object.Name, scopes: scopesOf(object)}
	keys := map[corev1.ResourceName]bool{}
	for key := range object.Spec.Hard {
		keys[key] = true
	}
	for key := range object.Status.Hard {
		keys[key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		known, pods := keyOf(cmp.Or(other[string(key)], string(key)))
		if !pods {
			continue
		}
		hard, decided := object.Status.Hard[key]
		used, counted := object.Status.Used[key]
		if !decided || !counted {
			l.unknown = string(key)
			hard = object.Spec.Hard[key]
		}
		if wanted, limited := object.Spec.Hard[key]; limited && wanted.Cmp(hard) < 0 {
			hard = wanted
		}
		value, err := resources.LimitValue(string(key), hard)
		if err != nil { // negative, which the API server rejects: nothing is allowed
			value = 0
		}
		l.keys = append(l.keys, limit{key: string(key), known: known, hard: value, used: resources.UsedValue(string(key), used)})
	}
	return l
}

// scopesOf returns the scopes that a pod must match for the quota to count it.
func scopesOf(object *corev1.ResourceQuota) []corev1.ScopedResourceSelectorRequirement {
	var scopes []corev1.ScopedResourceSelectorRequirement
	for _, scope := range object.Spec.Scopes {
		scopes = append(scopes, corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists})
	}
	if object.Spec.ScopeSelector != nil {
		scopes = append(scopes, object.Spec.ScopeSelector.MatchExpressions...)
	}
	return scopes
}

// matches reports whether the quota counts pods of the class.
func (l *limits) matches(class Class) bool {
	return !slices.ContainsFunc(l.scopes, func(scope corev1.ScopedResourceSelectorRequirement) bool { return !inScope(scope, class) })
}

func inScope(scope corev1.ScopedResourceSelectorRequirement, class Class) bool {
	switch scope.ScopeName {
	case corev1.ResourceQuotaScopeBestEffort:
		return class.BestEffort
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !class.BestEffort
	case corev1.ResourceQuotaScopeTerminating:
		return class.Terminating
	case corev1.ResourceQuotaScopeNotTerminating:
		return !class.Terminating
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return class.CrossNamespacePodAffinity
	case corev1.ResourceQuotaScopePriorityClass:
		return ofPriorityClass(scope, class.PriorityClass)
	default: // does not match in the API server either
		return false
	}
}

func ofPriorityClass(scope corev1.ScopedResourceSelectorRequirement, name string) bool {
	switch scope.Operator {
	case corev1.ScopeSelectorOpExists:
		return name != ""
	case corev1.ScopeSelectorOpDoesNotExist:
		return name == ""
	case corev1.ScopeSelectorOpIn:
		return name != "" && slices.Contains(scope.Values, name)
	case corev1.ScopeSelectorOpNotIn: // as with labels, matches pods without one
		return name == "" || !slices.Contains(scope.Values, name)
	default:
		return false
	}
}

// same reports whether the limits are equal except in what is used.
func (l *limits) same(other *limits) bool {
	return other != nil && l.name == other.name && l.unknown == other.unknown &&
		slices.EqualFunc(l.keys, other.keys, func(a, b limit) bool { return a.key == b.key && a.known == b.known && a.hard == b.hard }) &&
		slices.EqualFunc(l.scopes, other.scopes, func(a, b corev1.ScopedResourceSelectorRequirement) bool {
			return a.ScopeName == b.ScopeName && a.Operator == b.Operator && slices.Equal(a.Values, b.Values)
		})
}
