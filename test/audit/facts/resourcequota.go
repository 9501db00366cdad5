package facts

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// A ResourceQuota counts the pods of its namespace that match all its scopes. This file has the
// rules of the API server: what each key counts, and which pods match a scope.

// Quota describes a ResourceQuota after a write.
type Quota struct {
	scopes []quotaScope
	Limits []QuotaLimit // those on pods, sorted by key
	Bad    string       // error in an amount
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

type quotaScope struct {
	ScopeName, Operator string
	Values              []string
}

func parseResourceQuota(d *decoder, kind string, _ *meta, raw json.RawMessage) (any, error) {
	if kind != "ResourceQuota" {
		return nil, nil
	}
	var o struct {
		Spec struct {
			Hard          Quantities
			Scopes        []string
			ScopeSelector struct{ MatchExpressions []quotaScope }
		}
		Status struct{ Hard, Used Quantities }
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, err
	}
	q := &Quota{scopes: o.Spec.ScopeSelector.MatchExpressions}
	for _, name := range o.Spec.Scopes {
		q.scopes = append(q.scopes, quotaScope{ScopeName: name, Operator: "Exists"})
	}
	wanted, err := o.Spec.Hard.exact()
	decided, err2 := o.Status.Hard.exact()
	used, err3 := o.Status.Used.exact()
	for _, err := range []error{err, err2, err3} {
		if err != nil {
			q.Bad = err.Error()
			return q, nil
		}
	}
	all := maps.Clone(wanted)
	maps.Copy(all, decided)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		of, pods := counts(key)
		if !pods {
			continue
		}
		// all contains the values of the status, if there are any.
		limit := QuotaLimit{Key: d.word(key), Of: d.word(of), Hard: baseUnits(key, all[key], false)}
		if most, ok := wanted[key]; ok && most.Cmp(all[key]) < 0 {
			limit.Hard = baseUnits(key, most, false)
		}
		limit.Unknown = decided[key] == nil || used[key] == nil
		q.Limits = append(q.Limits, limit)
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
func (q *Quota) Same(other *Quota) bool {
	if q == nil || other == nil {
		return q == other
	}
	return q.Bad == other.Bad &&
		slices.EqualFunc(q.scopes, other.scopes, func(a, b quotaScope) bool {
			return a.ScopeName == b.ScopeName && a.Operator == b.Operator && slices.Equal(a.Values, b.Values)
		}) &&
		slices.EqualFunc(q.Limits, other.Limits, func(a, b QuotaLimit) bool {
			return a.Key == b.Key && a.Unknown == b.Unknown && a.Hard == b.Hard
		})
}

// Matches reports whether the quota counts pods of a class.
func (q *Quota) Matches(c Class) bool {
	for _, s := range q.scopes {
		if !s.holds(c) {
			return false
		}
	}
	return true
}

func (s *quotaScope) holds(c Class) bool {
	switch s.ScopeName {
	case "BestEffort", "NotBestEffort":
		return c.bestEffort == (s.ScopeName == "BestEffort")
	case "Terminating", "NotTerminating":
		return c.terminating == (s.ScopeName == "Terminating")
	case "CrossNamespacePodAffinity":
		return c.crossing
	case "PriorityClass":
		switch s.Operator {
		case "Exists":
			return c.priority != ""
		case "DoesNotExist":
			return c.priority == ""
		case "In":
			return c.priority != "" && slices.Contains(s.Values, c.priority)
		case "NotIn":
			return c.priority == "" || !slices.Contains(s.Values, c.priority)
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
