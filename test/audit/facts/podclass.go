package facts

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Class has the properties of a pod that scopes of ResourceQuotas match.
type Class struct {
	bestEffort, terminating, crossing bool
	priority                          string
}

func classOfPod(p *corev1.Pod) Class {
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
	return Class{
		bestEffort: p.Status.QOSClass == corev1.PodQOSBestEffort, priority: word(p.Spec.PriorityClassName),
		terminating: deadline != nil && *deadline >= 0,
		crossing:    slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool { return len(t.Namespaces) > 0 || t.NamespaceSelector != nil }),
	}
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
		all.Add(LoadOf(s.Class, s.Count, s.Requests, s.Limits))
	}
	if !u.PodSets {
		all.Add(LoadOf(Class{}, 1, u.Total, nil))
		delete(all[Class{}], livePods)
		delete(all[Class{}], allPods)
	}
	return all
}
