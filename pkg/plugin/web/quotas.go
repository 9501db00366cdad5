package web

import (
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	visibility "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/plugin/render"
)

// quotas are the quotas that the caller may see.
type quotas struct {
	*visibility.QuotaReviewStatus
	Nodes []node
}

// node is a quota, and its depth in the tree.
type node struct {
	visibility.QuotaSummary
	Depth int
	Bars  []bar
}

// Name returns the last part of the path.
func (n node) Name() string { return path.Base(n.Path) }

// bar shows how much of a resource a quota uses. Widths are in percent of the bar.
type bar struct {
	Resource                                                string
	Min, Used, Max, Borrowed, Lent, Owed, Unqueued, Waiting string
	OwnWidth, BorrowedWidth, UnqueuedWidth, MinAt           float64
	// Bounded says whether the quota has a min or max of the resource, and Over whether usage exceeds the max.
	Bounded, Over bool
}

// Text describes the bar for screen readers.
func (b bar) Text() string {
	parts := []string{fmt.Sprintf("%s: %s used", b.Resource, b.Used)}
	for _, part := range []struct{ name, amount string }{{"guaranteed", b.Min}, {"at most", b.Max}, {"borrowed", b.Borrowed}, {"lent", b.Lent}} {
		if part.amount != "" {
			parts = append(parts, part.name+" "+part.amount)
		}
	}
	return strings.Join(parts, ", ")
}

func readQuotas(v *view, r *http.Request, reader Reader) error {
	status, err := reader.Quotas(r.Context(), v.Namespace)
	if err != nil {
		return err
	}
	d := &quotas{QuotaReviewStatus: status}
	v.Template, v.Title, v.Data, v.Observed = "quotas", "Quotas", d, status.ObservedTime.Time
	var above []string
	for i := range status.Quotas {
		q := &status.Quotas[i]
		for len(above) > 0 && !strings.HasPrefix(q.Path, above[len(above)-1]+"/") {
			above = above[:len(above)-1]
		}
		n := node{QuotaSummary: *q, Depth: min(len(above), mostDepth)}
		for _, resource := range render.Resources(q, false) {
			n.Bars = append(n.Bars, barOf(q, resource))
		}
		d.Nodes, above = append(d.Nodes, n), append(above, q.Path)
	}
	return nil
}

// mostDepth is the largest depth of indentation.
const mostDepth = 6

func barOf(q *visibility.QuotaSummary, name corev1.ResourceName) bar {
	allUsed, requested := render.UseOf(q, name)
	used, borrowed, unqueued := render.Float(allUsed, name), render.Float(q.Borrowed, name), render.Float(q.Unqueued, name)
	least, most := render.Float(q.Min, name), render.Float(q.Max, name)
	scale := max(used, least, most)
	percent := func(amount float64) float64 {
		if scale == 0 {
			return 0
		}
		return 100 * amount / scale
	}
	_, limited := q.Max[name]
	_, guaranteed := q.Min[name]
	return bar{Resource: render.ResourceName(string(name)), Min: render.Amount(q.Min, name, ""), Used: render.Amount(allUsed, name, "0"), Max: render.Amount(q.Max, name, ""),
		Borrowed: render.Amount(q.Borrowed, name, ""), Lent: render.Amount(q.Lent, name, ""), Owed: render.Amount(owedTo(q, name), name, ""), Unqueued: render.Amount(q.Unqueued, name, ""), Waiting: render.Amount(requested, name, ""),
		OwnWidth: percent(used - borrowed), BorrowedWidth: percent(borrowed), UnqueuedWidth: percent(min(unqueued, used)), MinAt: percent(least),
		Bounded: limited || guaranteed, Over: limited && used > most}
}

// owed is a part of a guarantee that waiting jobs request and other quotas have borrowed.
type owed struct {
	Quota, Resource, Amount string
	// Borrowers are the quotas that have borrowed it; none if the caller may not see them.
	Borrowers []borrower
}

type borrower struct{ Quota, Amount string }

// owedAround returns what is owed to a quota, to those above it, and to those beside any of them.
func owedAround(quota string, all []visibility.QuotaSummary) (found []owed) {
	type shared struct { // by the quotas below a parent
		parent string
		name   corev1.ResourceName
	}
	borrowers := map[shared][]borrower{}
	for i := range all {
		for name, used := range all[i].Used {
			over := used.DeepCopy()
			over.Sub(all[i].Min[name])
			if at := (shared{parentOf(all[i].Path), name}); over.Sign() > 0 {
				borrowers[at] = append(borrowers[at], borrower{all[i].Path, render.Amount(corev1.ResourceList{name: over}, name, "")})
			}
		}
	}
	for i := range all {
		q := &all[i]
		if !strings.HasPrefix(quota, parentOf(q.Path)+"/") {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(q.Lent)) {
			if amount := owedTo(q, name); len(amount) > 0 {
				found = append(found, owed{q.Path, render.ResourceName(string(name)), render.Amount(amount, name, ""), borrowers[shared{parentOf(q.Path), name}]})
			}
		}
	}
	return found
}

// owedTo returns the part of a quota's guarantee that waiting jobs request and others have borrowed; empty if there is
// none.
func owedTo(q *visibility.QuotaSummary, name corev1.ResourceName) corev1.ResourceList {
	_, requested := render.UseOf(q, name)
	least := requested[name]
	if lent := q.Lent[name]; lent.Cmp(least) < 0 {
		least = lent
	}
	if least.Sign() <= 0 {
		return nil
	}
	return corev1.ResourceList{name: least}
}

// parentOf returns the path of the quota above another one; empty for the root.
func parentOf(quota string) string { return quota[:max(strings.LastIndexByte(quota, '/'), 0)] }
