package quota

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/pkg/resources"
)

// mostOthers is how many other resources a message names.
const mostOthers = 3

// WithOthers returns the refusal of a demand as users see it: it begins with the scarcest resource, and names all
// others that refuse the demand for the same reason or are insufficient, each at the limit nearest to the group.
func (r *Refusal) WithOthers(backend Explainer, group Group, d Demand) *Refusal {
	if !r.IsLimit() {
		return r
	}
	all := []*Refusal{r}
	found := backend.Lacks(group, d)
	if r.Final() {
		found = backend.Exceeds(group, d)
	}
	for _, other := range found {
		known := slices.ContainsFunc(all, func(a *Refusal) bool { return a.Resource == other.Resource })
		isSame := other.Reason == r.Reason || !r.Final()
		if !known && isSame && (other.Lack.Bound == Max || other.Lack.Bound == FixedMin || other.Lack.Bound == FixedMax) {
			all = append(all, other)
		}
	}
	if len(all) == 1 {
		return r
	}
	slices.SortStableFunc(all, func(a, b *Refusal) int { return cmp.Or(scarcer(a, b), strings.Compare(a.Resource, b.Resource)) })
	first := slices.IndexFunc(all, func(a *Refusal) bool { return a.Reason == r.Reason }) // the sentence must match the reason
	reported := *all[first]
	reported.Others = slices.Delete(all, first, first+1)
	return &reported
}

// scarcer orders refusals by how much of what is requested is available, the least first.
func scarcer(a, b *Refusal) int {
	ofA, lowA := bits.Mul64(a.available(), uint64(max(b.Asked, 0)))
	ofB, lowB := bits.Mul64(b.available(), uint64(max(a.Asked, 0)))
	return cmp.Or(cmp.Compare(ofA, ofB), cmp.Compare(lowA, lowB))
}

// available returns how much of the resource the unit could get.
func (r *Refusal) available() uint64 {
	if r.Final() {
		return uint64(max(r.Limit, 0))
	}
	return uint64(max(r.Limit-max(r.Used, 0), 0))
}

// others returns the part of the message that names the Others.
func (r *Refusal) others() string {
	if len(r.Others) == 0 {
		return ""
	}
	named := make([]string, 0, mostOthers)
	for _, o := range r.Others[:min(len(r.Others), mostOthers)] {
		format := func(v int64) string { return resources.Format(o.Resource, v) }
		figures := fmt.Sprintf("used %s of %s", format(o.Used), format(o.Limit))
		if o.Final() {
			figures = fmt.Sprintf("at most %s", format(o.Limit))
		}
		named = append(named, fmt.Sprintf("%s in %s (requested %s, %s)", o.Resource, o.Node, format(o.Asked), figures))
	}
	lead, more := "; also insufficient: ", ""
	if r.Final() {
		lead = "; also too large: "
	}
	if left := len(r.Others) - len(named); left > 0 {
		more = fmt.Sprintf(" and %d more", left)
	}
	return lead + strings.Join(named, ", ") + more
}
