package audit

import (
	"encoding/json"
	"math/big"
	"slices"
)

// class of a pod is what the scopes of ResourceQuotas tell apart.
type class struct {
	bestEffort, terminating, crossing bool
	priority                          string
}

// classOf the pods of a pod set, by the scopes that it names.
func classOf(scopes []string, priority string) class {
	return class{
		bestEffort: slices.Contains(scopes, "BestEffort"), terminating: slices.Contains(scopes, "Terminating"),
		crossing: slices.Contains(scopes, "CrossNamespacePodAffinity"), priority: priority,
	}
}

// classSpec is the part of a pod's spec that its class is told by.
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

// podSet is a number of equal pods that a unit asks for.
type podSet struct {
	count            int64
	requests, limits amounts // of one pod
	class            class
	unset            map[string]string // containers, by the key of which they say nothing
}

// load is what pods of each class take, by what the keys of ResourceQuotas count.
type load map[class]amounts

func (l load) add(other load, times int64) {
	for c, counted := range other {
		if l[c] == nil {
			l[c] = amounts{}
		}
		l[c].addTimes(counted, times)
	}
}

func loadOf(c class, pods int64, requests, limits amounts) load {
	counted := amounts{}
	counted.addTimes(amounts{livePods: big.NewInt(1), allPods: big.NewInt(1)}, pods)
	for name, n := range requests {
		counted.addTimes(amounts{"requests." + name: n}, pods)
	}
	for name, n := range limits {
		counted.addTimes(amounts{"limits." + name: n}, pods)
	}
	return load{c: counted}
}

// load is what the pods of a unit take. Of one that says nothing of its pods it is
// known what they ask for together.
func (u *unitFacts) load() load {
	if !u.podSets {
		whole := loadOf(class{}, 1, u.total, nil)
		delete(whole[class{}], livePods)
		delete(whole[class{}], allPods)
		return whole
	}
	all := load{}
	for _, s := range u.sets {
		all.add(loadOf(s.class, s.count, s.requests, s.limits), 1)
	}
	return all
}

// size is with how many pods a unit's job starts.
func (u *unitFacts) size() (pods int64) {
	for _, s := range u.sets {
		pods += s.count
	}
	return pods
}

// load is what a pod takes now: one that has ended is only there. Of a pod that is
// older than the log, or was resized, only the number is known.
func (p *pod) load() load {
	switch {
	case !p.gone.IsZero():
		return nil
	case !p.over.IsZero():
		return load{p.class: amounts{allPods: big.NewInt(1)}}
	case p.resized:
		return loadOf(p.class, 1, nil, nil)
	}
	return loadOf(p.class, 1, p.requests, p.limits)
}
