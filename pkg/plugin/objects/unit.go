// Package objects answers the questions of the kubectl plugin from the objects that the caller may read, for clusters
// where kube-queue-controller does not answer reviews. The answers have the types of the reviews, but lack what the
// objects do not show. The package uses no cluster and no clock.
package objects

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	visibility "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
	"kube-queue.dev/kube-queue/pkg/plugin/units"
	"kube-queue.dev/kube-queue/pkg/resources"
)

const (
	// mostAhead, mostHolders and mostHolding are the maximum lengths of the lists in an answer, as in reviews.
	mostAhead, mostHolders, mostHolding = 10, 20, 10
	// boundMax is the bound of a Lack at a max.
	boundMax = "Max"
)

// Read holds the objects that the caller may read. All but the unit can be missing.
type Read struct {
	Unit *v1alpha1.QueueUnit
	// Queue is the Queue of the unit; nil if it cannot be read.
	Queue *v1alpha1.Queue
	// Units are the units of all namespaces; nil if they cannot be listed.
	Units []units.Unit
	// Quotas are the nodes of the tree, from Tree; nil if it cannot be read.
	Quotas []visibility.QuotaSummary
	// Down is the message of the job's last event if that says that kube-queue-controller does not run; otherwise empty.
	Down string
}

// undecided is the message of a unit that waits and shows no reason.
const undecided = "the unit shows no reason: kube-queue-controller has not decided about it yet, or does not run"

// Why returns why the unit waits.
func Why(read Read, now metav1.MicroTime) *visibility.QueueUnitReviewStatus {
	unit := read.Unit
	status := &visibility.QueueUnitReviewStatus{
		ObservedTime: now, Phase: string(cmp.Or(unit.Status.Phase, v1alpha1.PhaseEnqueued)), Queue: unit.Status.Queue, Quota: unit.Status.Quota,
		Priority: unit.Spec.Priority, Requests: admitted(unit), Reason: unit.Status.Reason, Message: unit.Status.Message,
	}
	AddHolding(status, unit)
	if read.Queue != nil {
		status.Policy = string(read.Queue.Status.Policy)
		if most := read.Queue.Spec.MaxPriority; most != nil {
			status.Priority = min(status.Priority, *most)
		}
	}
	if !unit.Status.Phase.Waits() {
		return status
	}
	if status.Reason == "" && status.Message == "" {
		status.Message = cmp.Or(read.Down, undecided)
	}
	if state := unit.Status.RequeueState; state != nil && state.RequeueAt != nil && unit.Status.Phase == v1alpha1.PhaseBackoff {
		status.Until = new(metav1.NewTime(state.RequeueAt.Time))
	}
	if read.Units != nil && ptr.Deref(unit.Spec.Active, true) {
		placeInQueue(status, read)
	}
	lacks(status, usedBy(read), unit.Spec.Growth)
	if read.Units != nil {
		holders(status, read.Units)
	}
	if message, known := advice[unit.Status.Reason]; known {
		status.WouldAdmit = []visibility.Remedy{{Type: message.kind, Message: message.text}}
	}
	return status
}

// AddHolding copies the reason of a unit that holds quota to an answer without a reason: its job has ended but pods
// are left, or its pods have no node. Reviews do not have these reasons, because they do not affect admission.
func AddHolding(status *visibility.QueueUnitReviewStatus, unit *v1alpha1.QueueUnit) {
	if status.Reason != "" || status.Phase != string(unit.Status.Phase) || !unit.Status.Phase.HoldsQuota() {
		return
	}
	status.Reason, status.Message = unit.Status.Reason, unit.Status.Message
	if unscheduled := apimeta.FindStatusCondition(unit.Status.Conditions, wellknown.ConditionPodsScheduled); status.Reason == "" && unscheduled != nil && unscheduled.Status == metav1.ConditionFalse {
		status.Reason, status.Message = wellknown.Reason(unscheduled.Reason), unscheduled.Message
	}
}

// placeInQueue sets the position of the unit, and the units ahead of it.
func placeInQueue(status *visibility.QueueUnitReviewStatus, read Read) {
	var own *units.Unit
	var waiting []*units.Unit
	for i := range read.Units {
		u := &read.Units[i]
		if u.Status.Queue != status.Queue || status.Queue == "" || !isTried(u) {
			continue
		}
		waiting = append(waiting, u)
		if u.Metadata.Namespace == read.Unit.Namespace && u.Metadata.Name == read.Unit.Name {
			own = u
		}
	}
	if own == nil {
		return
	}
	ahead := slices.DeleteFunc(slices.Clone(waiting), func(u *units.Unit) bool { return units.InQueue(u, own, read.Queue) >= 0 })
	slices.SortFunc(ahead, func(a, b *units.Unit) int { return units.InQueue(a, b, read.Queue) })
	status.Position, status.Waiting = int32(len(ahead)+1), int32(len(waiting))
	for i, u := range ahead[:min(len(ahead), mostAhead)] {
		summary := Summary(u)
		summary.Position = int32(i + 1)
		status.Ahead = append(status.Ahead, summary)
	}
}

// isTried reports whether a unit waits to be tried. A unit that needs a user's action has no place in its queue.
func isTried(u *units.Unit) bool {
	return u.Phase().Waits() && !u.Holding() && !wellknown.Reason(u.Status.Reason).NeedsAction()
}

// Summary describes a unit.
func Summary(u *units.Unit) visibility.UnitSummary {
	s := visibility.UnitSummary{
		Namespace: u.Metadata.Namespace, Name: u.Metadata.Name, Kind: u.Spec.ConsumerRef.Kind, Queue: u.Status.Queue,
		Phase: string(u.Phase()), Reason: wellknown.Reason(u.Status.Reason), Priority: u.Spec.Priority, Requests: requests(u),
		SubmissionTime: new(metav1.NewTime(u.Submitted())),
	}
	if u.Status.DequeueTime != nil && !u.Phase().Waits() { // a unit that waits again was admitted earlier
		s.DequeueTime = new(metav1.NewTime(*u.Status.DequeueTime))
	}
	return s
}

// admitted returns what a unit requests or, while it holds quota, what its admitted pods request, like Unit.Requests.
func admitted(unit *v1alpha1.QueueUnit) corev1.ResourceList {
	rest := unit.Spec.Resource.DeepCopy()
	for i := range unit.Spec.PodSets {
		set := &unit.Spec.PodSets[i]
		missing := int64(set.Count - lifecycle.AdmittedPods(unit, set))
		for name, each := range set.Requests {
			if total, is := rest[name]; is && missing > 0 {
				each = each.DeepCopy()
				each.Mul(missing)
				total.Sub(each)
				rest[name] = total
			}
		}
	}
	return rest
}

// requests returns the amounts of Unit.Requests that are valid quantities.
func requests(u *units.Unit) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, amount := range u.Requests() {
		if q, valid := amount.Quantity(); valid {
			list[corev1.ResourceName(name)] = q
		}
	}
	return list
}

// usedBy returns the nodes of the tree. If the units can be listed, the usage of each node is what its units hold: the
// status of the tree can be older and contradict the holders, which come from the units. It returns nothing if the
// unit is in no node, because then another quota backend is in use.
func usedBy(read Read) []visibility.QuotaSummary {
	if !slices.ContainsFunc(read.Quotas, func(q visibility.QuotaSummary) bool { return q.Path == read.Unit.Status.Quota }) {
		return nil
	}
	if read.Units == nil {
		return read.Quotas
	}
	quotas := slices.Clone(read.Quotas)
	for i := range quotas {
		used := maps.Clone(quotas[i].Unqueued)
		if used == nil {
			used = corev1.ResourceList{}
		}
		for j := range read.Units {
			if u := &read.Units[j]; u.Phase().HoldsQuota() && within(u.Status.Quota, quotas[i].Path) {
				add(used, held(u))
			}
		}
		quotas[i].Used = used
	}
	return quotas
}

// held returns what a unit that holds quota uses.
func held(u *units.Unit) corev1.ResourceList {
	used := requests(u)
	if !u.Spec.Growth { // its job already counts
		used[wellknown.MaxJobsResource] = resource.MustParse("1")
	}
	return used
}

func add(sum, amounts corev1.ResourceList) {
	for name, amount := range amounts {
		total := sum[name]
		total.Add(amount)
		sum[name] = total
	}
}

// lacks sets the limits that the request exceeds, from the quota of the unit up to the root.
func lacks(status *visibility.QueueUnitReviewStatus, quotas []visibility.QuotaSummary, growth bool) {
	for i := len(quotas) - 1; i >= 0; i-- {
		node := quotas[i]
		if !within(status.Quota, node.Path) {
			continue
		}
		wanted := maps.Clone(status.Requests)
		if wanted == nil {
			wanted = corev1.ResourceList{}
		}
		if !growth {
			wanted[wellknown.MaxJobsResource] = resource.MustParse("1")
		}
		for _, name := range slices.Sorted(maps.Keys(wanted)) {
			limit, limited := node.Max[name]
			requested := wanted[name]
			if !limited || requested.IsZero() {
				continue
			}
			used := node.Used[name]
			missing := used.DeepCopy()
			missing.Add(requested)
			missing.Sub(limit)
			if missing.Sign() > 0 {
				format := func(q resource.Quantity) string { return resources.FormatQuantity(string(name), q) }
				status.Lacks = append(status.Lacks, visibility.Lack{Quota: node.Path, Bound: boundMax, Resource: string(name),
					Requested: format(requested), Used: format(used), Limit: format(limit), Missing: format(missing)})
			}
		}
	}
}

// within reports whether the quota is at or below the node.
func within(quota, node string) bool {
	return quota == node || strings.HasPrefix(quota, node+"/")
}

// holders sets the quotas and units that hold what the unit lacks.
func holders(status *visibility.QueueUnitReviewStatus, all []units.Unit) {
	if len(status.Lacks) == 0 {
		return
	}
	lacked := map[corev1.ResourceName]bool{}
	for _, lack := range status.Lacks {
		lacked[corev1.ResourceName(lack.Resource)] = true
	}
	top := status.Lacks[len(status.Lacks)-1].Quota // the lack nearest to the root
	first := corev1.ResourceName(status.Lacks[0].Resource)
	byQuota := map[string]*visibility.Holder{}
	var holding []visibility.UnitSummary
	for i := range all {
		u := &all[i]
		if !u.Phase().HoldsQuota() || !within(u.Status.Quota, top) {
			continue
		}
		used := held(u)
		maps.DeleteFunc(used, func(name corev1.ResourceName, q resource.Quantity) bool { return !lacked[name] || q.IsZero() })
		if len(used) == 0 {
			continue
		}
		h := byQuota[u.Status.Quota]
		if h == nil {
			h = &visibility.Holder{Quota: u.Status.Quota, Used: corev1.ResourceList{}}
			byQuota[u.Status.Quota] = h
		}
		h.Units++
		add(h.Used, used)
		holding = append(holding, Summary(u))
	}
	for _, path := range slices.Sorted(maps.Keys(byQuota)) {
		status.Holders = append(status.Holders, *byQuota[path])
	}
	slices.SortStableFunc(status.Holders, func(a, b visibility.Holder) int { return more(a.Used, b.Used, first) })
	slices.SortStableFunc(holding, func(a, b visibility.UnitSummary) int { return more(a.Requests, b.Requests, first) })
	status.Holders = status.Holders[:min(len(status.Holders), mostHolders)]
	status.HoldingUnits = holding[:min(len(holding), mostHolding)]
}

// more orders by the amount of a resource, the largest first.
func more(a, b corev1.ResourceList, name corev1.ResourceName) int {
	one, other := a[name], b[name]
	return other.Cmp(one)
}

// remedy is advice for a unit with a reason.
type remedy struct {
	kind visibility.RemedyType
	text string
}

// Reasons returns the reasons that a unit can show, in order.
func Reasons() []string {
	all := []string{string(wellknown.ReasonNotRenewed)}
	for reason := range advice {
		all = append(all, string(reason))
	}
	for _, move := range lifecycle.Moves() {
		if move.Name == lifecycle.Evict {
			for _, reason := range move.To.Reasons {
				all = append(all, string(reason))
			}
		}
		if move.To.Reason != "" {
			all = append(all, string(move.To.Reason))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Helps returns what lets jobs with the reason start, in general; empty if there is nothing to say.
func Helps(reason wellknown.Reason) string { return advice[reason].text }

var advice = map[wellknown.Reason]remedy{
	wellknown.ReasonQuotaExceeded:          {visibility.Wait, "the job starts when enough of the jobs that hold the quota have ended"},
	wellknown.ReasonMaxJobs:                {visibility.Wait, "the job starts when one of the jobs that hold the quota has ended"},
	wellknown.ReasonBorrowingPaused:        {visibility.Wait, "the job starts after the jobs for which the quota is kept, or immediately if it requests at most the unused min of its quota"},
	wellknown.ReasonPreempting:             {visibility.Wait, "the job starts when the jobs that are being evicted for it have stopped"},
	wellknown.ReasonNotAtFront:             {visibility.Wait, "the job starts after the jobs ahead of it in its queue"},
	wellknown.ReasonWaitingForPods:         {visibility.Wait, "the job starts when all pods of the job that was released before it are ready"},
	wellknown.ReasonBackoff:                {visibility.Wait, "the job is queued again when its backoff ends"},
	wellknown.ReasonJobChanged:             {visibility.Wait, "the job is queued again with its new request"},
	wellknown.ReasonQueueStopped:           {visibility.ChangeObject, "an administrator resumes the queue: kubectl kube-queue resume QUEUE"},
	wellknown.ReasonInactive:               {visibility.ChangeObject, "unpause the job: kubectl kube-queue unpause JOB"},
	wellknown.ReasonSuspendedByUser:        {visibility.ChangeObject, "unsuspend the job, which queues it again"},
	wellknown.ReasonExceedsMaxQuota:        {visibility.LowerRequest, "request less, or ask an administrator to raise the max of the quota"},
	wellknown.ReasonExceedsMinQuota:        {visibility.LowerRequest, fmt.Sprintf("request at most the min of the quota, or remove the label %s", wellknown.PreemptibleLabel)},
	wellknown.ReasonNoQuota:                {visibility.ChangeObject, "ask an administrator to add the namespace to a node of the quota tree"},
	wellknown.ReasonQuotaNotAllowed:        {visibility.ChangeObject, fmt.Sprintf("correct or remove the label %s of the job", wellknown.QuotaNameLabel)},
	wellknown.ReasonInvalidQuotaTree:       {visibility.ChangeObject, "an administrator must correct the quota tree"},
	wellknown.ReasonInvalidRequest:         {visibility.ChangeObject, "correct the job as the message says"},
	wellknown.ReasonKindNotQueued:          {visibility.ChangeObject, "an administrator must let job-extensions queue the kind"},
	wellknown.ReasonTerminating:            {visibility.ChangeObject, "remove the finalizer of the unit; the job then gets another one"},
	wellknown.ReasonAdmissionCheckMissing:  {visibility.ChangeObject, "an administrator must create the AdmissionCheck, or remove it from the queue"},
	wellknown.ReasonAdmissionCheckRejected: {visibility.ChangeObject, "change the job as the message says"},
}
