package tree

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/spelling"
)

// everyOther in the namespaces of a node means all namespaces that no other node lists.
const everyOther = "*"

// places are the groups by namespace and by path, as indexes. All lists are in tree order. Copies of a tree share its
// places, which never change.
type places struct {
	listed map[string][]int32
	others []int32
	paths  map[string]int32
}

func (p *places) add(group int, path string, namespaces []string) {
	if p.listed == nil {
		p.listed, p.paths = map[string][]int32{}, map[string]int32{}
	}
	p.paths[path] = int32(group)
	for _, namespace := range namespaces {
		if namespace == everyOther {
			p.others = append(p.others, int32(group))
		} else {
			p.listed[namespace] = append(p.listed[namespace], int32(group))
		}
	}
}

// find returns the group of the namespace. The quota name, if not empty, selects one of several.
func (t *Tree) find(namespace, quotaName string) (*group, *quota.Refusal) {
	allowed := t.places.listed[namespace]
	if allowed == nil {
		allowed = t.places.others
	}
	if quotaName == "" {
		if allowed == nil {
			return nil, noQuota(namespace)
		}
		return t.groups[allowed[0]].(*group), nil
	}
	var others []*group
	for _, i := range allowed {
		g := t.groups[i].(*group)
		if g.chain[0].name == quotaName || g.Path() == quotaName {
			return g, nil
		}
		others = append(others, g)
	}
	return nil, notAllowed(namespace, quotaName, others)
}

// Members returns the namespaces whose units belong to each group, by the Queue of the group.
func (t *Tree) Members() map[string][]string {
	members := map[string][]string{}
	add := func(namespace string, groups []int32) {
		for _, i := range groups {
			queue := t.groups[i].Queue()
			members[queue] = append(members[queue], namespace)
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(t.places.listed)) {
		add(namespace, t.places.listed[namespace])
	}
	add(everyOther, t.places.others)
	return members
}

func noQuota(namespace string) *quota.Refusal {
	return &quota.Refusal{
		Reason: wellknown.ReasonNoQuota,
		Sentence: fmt.Sprintf("no quota lists namespace %q; ask an administrator to add the namespace to a node of the ElasticQuotaTree",
			namespace),
	}
}

func notAllowed(namespace, quotaName string, allowed []*group) *quota.Refusal {
	r := &quota.Refusal{Reason: wellknown.ReasonQuotaNotAllowed}
	if len(allowed) == 0 {
		r.Sentence = fmt.Sprintf("namespace %q may not use quota %q because no quota lists the namespace; ask an administrator to add the namespace to a node of the ElasticQuotaTree and set the label %s to the name of that node",
			namespace, quotaName, wellknown.QuotaNameLabel)
	} else if meant := spelling.Nearest(quotaName, namesOf(allowed)); meant != "" {
		r.Sentence = fmt.Sprintf("namespace %q may not use quota %q, only %s; did you mean %q? Correct or remove the label %s",
			namespace, quotaName, list(allowed), meant, wellknown.QuotaNameLabel)
	} else {
		r.Sentence = fmt.Sprintf("namespace %q may not use quota %q, only %s; correct or remove the label %s",
			namespace, quotaName, list(allowed), wellknown.QuotaNameLabel)
	}
	r.Detail = r.Sentence
	return r
}

// namesOf returns the names and the paths of the groups.
func namesOf(groups []*group) (names []string) {
	for _, g := range groups {
		names = append(names, g.chain[0].name)
	}
	for _, g := range groups {
		names = append(names, g.Path())
	}
	return names
}

// list returns the names and paths of the groups for a message, at most 10 of them.
func list(groups []*group) string {
	const most = 10
	var names []string
	for i, g := range groups {
		if i == most {
			names = append(names, fmt.Sprintf("%d more", len(groups)-most))
			break
		}
		names = append(names, fmt.Sprintf("%q (%s)", g.chain[0].name, g.Path()))
	}
	return strings.Join(names, ", ")
}
