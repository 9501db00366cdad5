package model

import (
	"encoding/json"
	"math/big"
	"slices"
)

// class has the properties of a pod that scopes of ResourceQuotas match.
type class struct {
	bestEffort, terminating, crossing bool
	priority                          string
}

// classOf returns the class of the pods of a pod set, from its quota scopes.
func classOf(scopes []string, priority string) class {
	return class{
		bestEffort: slices.Contains(scopes, "BestEffort"), terminating: slices.Contains(scopes, "Terminating"),
		crossing: slices.Contains(scopes, "CrossNamespacePodAffinity"), priority: priority,
	}
}

// classSpec is the part of a pod's spec that determines its class.
type classSpec struct {
	PriorityClassName     string
	ActiveDeadlineSeconds *int64
	Affinity              struct{ PodAffinity, PodAntiAffinity podAffinity }
}

type podAffinity struct {
	Required []podTerm `json:"requiredDuringSchedulingIgnoredDuringExecution"`
	Wanted   []struct {
		PodAffinityTerm podTerm
	} `json:"preferredDuringSchedulingIgnoredDuringExecution"`
}

type podTerm struct {
	Namespaces        []string
	NamespaceSelector json.RawMessage
}

func (t *podTerm) crosses() bool {
	return len(t.Namespaces) > 0 || len(t.NamespaceSelector) > 0 && string(t.NamespaceSelector) != "null"
}

func (s *classSpec) class(bestEffort bool) class {
	c := class{bestEffort: bestEffort, priority: s.PriorityClassName,
		terminating: s.ActiveDeadlineSeconds != nil && *s.ActiveDeadlineSeconds >= 0}
	for _, affinity := range []podAffinity{s.Affinity.PodAffinity, s.Affinity.PodAntiAffinity} {
		for _, t := range affinity.Required {
			c.crossing = c.crossing || t.crosses()
		}
		for _, t := range affinity.Wanted {
			c.crossing = c.crossing || t.PodAffinityTerm.crosses()
		}
	}
	return c
}

// podSet is a group of equal pods of a unit.
type podSet struct {
	Count            int64
	requests, limits Amounts // of one pod
	Class            class
	Unset            map[string]string // containers without a value, by the key that they lack
}

// Load is the usage of pods by class, in terms of what the keys of ResourceQuotas count.
type Load map[class]Amounts

func (l Load) Add(other Load, times int64) {
	for c, counted := range other {
		if l[c] == nil {
			l[c] = Amounts{}
		}
		l[c].AddTimes(counted, times)
	}
}

func LoadOf(c class, pods int64, requests, limits Amounts) Load {
	counted := Amounts{}
	counted.AddTimes(Amounts{livePods: big.NewInt(1), allPods: big.NewInt(1)}, pods)
	for name, n := range requests {
		counted.AddTimes(Amounts{"requests." + name: n}, pods)
	}
	for name, n := range limits {
		counted.AddTimes(Amounts{"limits." + name: n}, pods)
	}
	return Load{c: counted}
}

// Load returns the usage of the unit's pods. For a unit without pod sets that is its total request.
func (u *UnitFacts) Load() Load {
	if !u.PodSets {
		whole := LoadOf(class{}, 1, u.Total, nil)
		delete(whole[class{}], livePods)
		delete(whole[class{}], allPods)
		return whole
	}
	all := Load{}
	for _, s := range u.Sets {
		all.Add(LoadOf(s.Class, s.Count, s.requests, s.limits), 1)
	}
	return all
}

// Size returns the number of pods at the start of the unit's job.
func (u *UnitFacts) Size() (pods int64) {
	for _, s := range u.Sets {
		pods += s.Count
	}
	return pods
}

// load returns the current usage of a pod. A pod that has ended counts only as an object. For a pod
// that is older than the log, or was resized, only the count is known.
func (p *Pod) load() Load {
	switch {
	case !p.Gone.IsZero():
		return nil
	case !p.Over.IsZero():
		return Load{p.Class: Amounts{allPods: big.NewInt(1)}}
	case p.resized:
		return LoadOf(p.Class, 1, nil, nil)
	}
	return LoadOf(p.Class, 1, p.Requests, p.Limits)
}
