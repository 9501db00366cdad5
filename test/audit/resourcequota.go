package audit

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strings"
)

// A ResourceQuota counts those pods of its namespace that match all its scopes. Here
// is what its keys count of a pod, and which pods match a scope, by the rules of the
// API server.

// quotaFacts is a ResourceQuota as one write left it.
type quotaFacts struct {
	scopes []quotaScope
	limits []quotaLimit // of pods, in the order of their keys
	bad    string       // why it cannot be read
}

// quotaLimit is what a quota says of one key.
type quotaLimit struct {
	key string
	of  string // what of a load it limits
	// hard is the lower of spec and status, used what the status says.
	hard, used *big.Int
	// unknown: the status says nothing of it yet.
	unknown bool
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
			Hard          quantities
			Scopes        []string
			ScopeSelector struct{ MatchExpressions []quotaScope }
		}
		Status struct{ Hard, Used quantities }
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, err
	}
	q := &quotaFacts{scopes: o.Spec.ScopeSelector.MatchExpressions}
	for _, name := range o.Spec.Scopes {
		q.scopes = append(q.scopes, quotaScope{ScopeName: name, Operator: "Exists"})
	}
	wanted, err := o.Spec.Hard.exact()
	decided, err2 := o.Status.Hard.exact()
	used, err3 := o.Status.Used.exact()
	for _, err := range []error{err, err2, err3} {
		if err != nil {
			q.bad = err.Error()
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
		// all holds what the status says, where it says anything.
		limit := quotaLimit{key: d.word(key), of: d.word(of), hard: baseUnits(key, all[key], false), used: new(big.Int)}
		if most, ok := wanted[key]; ok && most.Cmp(all[key]) < 0 {
			limit.hard = baseUnits(key, most, false)
		}
		if used[key] != nil {
			limit.used = baseUnits(key, used[key], true)
		}
		limit.unknown = decided[key] == nil || used[key] == nil
		q.limits = append(q.limits, limit)
	}
	return q, nil
}

// What a load counts beside requests and limits: pods that have not ended, and all.
const (
	livePods = "pods"
	allPods  = "count/pods"
)

// counts tells what of pods a key counts: "cpu" means "requests.cpu". Many keys are
// not about pods.
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
	default: // an extended resource counts with the prefix only
		return key, prefixed && strings.Contains(name, "/") && !strings.Contains(name, "kubernetes.io/")
	}
}

func standard(name string) bool {
	return name == "cpu" || name == "memory" || name == "ephemeral-storage"
}

// same tells whether the quotas differ in nothing but what is used.
func (q *quotaFacts) same(other *quotaFacts) bool {
	if q == nil || other == nil {
		return q == other
	}
	return q.bad == other.bad &&
		slices.EqualFunc(q.scopes, other.scopes, func(a, b quotaScope) bool {
			return a.ScopeName == b.ScopeName && a.Operator == b.Operator && slices.Equal(a.Values, b.Values)
		}) &&
		slices.EqualFunc(q.limits, other.limits, func(a, b quotaLimit) bool {
			return a.key == b.key && a.unknown == b.unknown && a.hard.Cmp(b.hard) == 0
		})
}

// matches tells whether the quota counts pods of a class.
func (q *quotaFacts) matches(c class) bool {
	for _, s := range q.scopes {
		if !s.holds(c) {
			return false
		}
	}
	return true
}

func (s *quotaScope) holds(c class) bool {
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

// weigh is what one limit of the quota counts of a load.
func (q *quotaFacts) weigh(limit *quotaLimit, l load) *big.Int {
	sum := new(big.Int)
	for c, counted := range l {
		if n, ok := counted[limit.of]; ok && q.matches(c) {
			sum.Add(sum, n)
		}
	}
	return sum
}
