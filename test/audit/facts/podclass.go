package facts

import (
	"encoding/json"
	"slices"
)

// Class has the properties of a pod that scopes of ResourceQuotas match.
type Class struct {
	bestEffort, terminating, crossing bool
	priority                          string
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

func (s *classSpec) class(bestEffort bool) Class {
	c := Class{bestEffort: bestEffort, priority: s.PriorityClassName,
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

// classOf returns the class of the pods of a pod set, from its quota scopes.
func classOf(scopes []string, priority string) Class {
	return Class{
		bestEffort: slices.Contains(scopes, "BestEffort"), terminating: slices.Contains(scopes, "Terminating"),
		crossing: slices.Contains(scopes, "CrossNamespacePodAffinity"), priority: priority,
	}
}

// Load is the usage of pods by class, in terms of what the keys of ResourceQuotas count.
type Load map[Class]Amounts

// Add adds another load.
func (l Load) Add(other Load) {
	for c, counted := range other {
		if l[c] == nil {
			l[c] = Amounts{}
		}
		l[c].AddTimes(counted, 1)
	}
}

// LoadOf returns the load of equal pods.
func LoadOf(c Class, pods int64, requests, limits Amounts) Load {
	counted := Amounts{livePods: pods, allPods: pods}
	for name, n := range requests {
		counted["requests."+name] = n * pods
	}
	for name, n := range limits {
		counted["limits."+name] = n * pods
	}
	return Load{c: counted}
}

// OnePod returns the load of a pod that has ended.
func OnePod(c Class) Load { return Load{c: Amounts{allPods: 1}} }

// Load returns the usage of the unit's pods. For a unit without pod sets that is its total request.
func (u *Unit) Load() Load {
	all := Load{}
	for _, s := range u.Sets {
		all.Add(LoadOf(s.Class, s.Count, s.requests, s.limits))
	}
	if !u.PodSets {
		all.Add(LoadOf(Class{}, 1, u.Total, nil))
		delete(all[Class{}], livePods)
		delete(all[Class{}], allPods)
	}
	return all
}
