package requests

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// withTypes adds to the requests of one pod the types of its devices.
func (r Rules) withTypes(list corev1.ResourceList, spec *corev1.PodSpec) (corev1.ResourceList, error) {
	sum := typed(list, func(name corev1.ResourceName) corev1.ResourceName { return r.typeOf(name, spec) })
	return sum, within(sum)
}

// typed is withTypes for amounts of any size.
func typed(list corev1.ResourceList, typeOf func(corev1.ResourceName) corev1.ResourceName) corev1.ResourceList {
	types := corev1.ResourceList{}
	for name, quantity := range list {
		addType(types, typeOf(name), quantity)
	}
	if len(types) == 0 {
		return list
	}
	sum := list.DeepCopy()
	addUnchecked(sum, types)
	return sum
}

// addType adds an amount of devices of a type, if they have one.
func addType(total corev1.ResourceList, kind corev1.ResourceName, amount resource.Quantity) {
	if kind != "" && !amount.IsZero() {
		addUnchecked(total, corev1.ResourceList{kind: amount.DeepCopy()})
	}
}

// typeOf returns the type of the devices that a pod requests through the resource; empty if they have none.
func (r Rules) typeOf(name corev1.ResourceName, spec *corev1.PodSpec) corev1.ResourceName {
	types, has := r.Types[name]
	if !has {
		return ""
	}
	if only := types.selected(spec); only != "" {
		return only
	}
	return types.Default
}

// selected returns the type if all nodes that the pod allows have the same type; empty otherwise.
func (t Types) selected(spec *corev1.PodSpec) corev1.ResourceName {
	only := corev1.ResourceName("")
	for _, required := range alternatives(spec.Affinity) {
		name, possible := t.selectedBy(spec.NodeSelector, required)
		switch {
		case !possible:
		case name == "", only != "" && name != only:
			return ""
		default:
			only = name
		}
	}
	return only
}

// alternatives returns the terms of the required node affinity. A node must match one of them. If nothing is
// required, there is one empty term. A term without any requirement matches no node.
func alternatives(affinity *corev1.Affinity) [][]corev1.NodeSelectorRequirement {
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return [][]corev1.NodeSelectorRequirement{nil}
	}
	var terms [][]corev1.NodeSelectorRequirement
	for _, term := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		if len(term.MatchExpressions)+len(term.MatchFields) > 0 {
			terms = append(terms, term.MatchExpressions)
		}
	}
	return terms
}

// selectedBy returns the type of all nodes that match the selector and the requirements; empty if there is not
// exactly one. possible is false if no node matches.
func (t Types) selectedBy(selector map[string]string, required []corev1.NodeSelectorRequirement) (only corev1.ResourceName, possible bool) {
	for _, label := range sortedKeys(t.Names) {
		values, restricted := allowedValues(label, selector, required)
		if !restricted {
			continue
		}
		if len(values) == 0 {
			return "", false
		}
		name := t.Names[label][values[0]]
		if slices.ContainsFunc(values, func(value string) bool { return t.Names[label][value] != name }) || name == "" {
			continue // another label can still determine the type
		}
		if only != "" && name != only {
			return "", true
		}
		only = name
	}
	return only, true
}

// allowedValues returns the values of the node label that the selector and all
// requirements with operator In allow.
func allowedValues(label string, selector map[string]string, required []corev1.NodeSelectorRequirement) (values []string, restricted bool) {
	restrict := func(allowed []string) {
		if !restricted {
			values, restricted = slices.Clone(allowed), true
			return
		}
		values = slices.DeleteFunc(values, func(value string) bool { return !slices.Contains(allowed, value) })
	}
	if value, given := selector[label]; given {
		restrict([]string{value})
	}
	for _, requirement := range required {
		if requirement.Key == label && requirement.Operator == corev1.NodeSelectorOpIn {
			restrict(requirement.Values)
		}
	}
	return values, restricted
}
