package objects

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	visibility "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/arrival"
	"kube-queue.dev/kube-queue/pkg/controller/codec"
	"kube-queue.dev/kube-queue/pkg/generated/kinds"
	"kube-queue.dev/kube-queue/pkg/plugin/units"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/quota/tree/manifest"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/pkg/simulator"
)

// Trial is a quota tree with all jobs of a cluster, and additional jobs.
type Trial struct {
	Root tree.Node
	// Quotas are the nodes of the tree in force, for the usage of pods that belong to no unit.
	Quotas []visibility.QuotaSummary
	Queues []v1alpha1.Queue
	Units  []v1alpha1.QueueUnit
	// Jobs are units that do not exist in the cluster.
	Jobs []v1alpha1.QueueUnit
}

// Simulation is what would start, and what would wait.
type Simulation struct {
	// Faults are the reasons why the tree is invalid. If there are any, nothing else is set.
	Faults []string `json:"faults,omitempty"`
	// Warnings are warnings about the tree.
	Warnings []string `json:"warnings,omitempty"`
	// Jobs say what would happen to each job in the files.
	Jobs []SimulatedJob `json:"jobs,omitempty"`
	// Started are the waiting units that would start immediately. Evicted are the units that would be evicted for others,
	// each in its own group. Waiting are the units that would wait.
	Started []visibility.UnitGroup `json:"started,omitempty"`
	Evicted []visibility.UnitGroup `json:"evicted,omitempty"`
	Waiting []visibility.UnitGroup `json:"waiting,omitempty"`
	// OverLimits are limits that the running jobs would exceed.
	OverLimits []string `json:"overLimits,omitempty"`
}

// SimulatedJob is what would happen to a job.
type SimulatedJob struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Starts is true if the job would start immediately.
	Starts bool   `json:"starts"`
	Quota  string `json:"quota,omitempty"`
	// Checks are the admission checks that would follow. They are not simulated.
	Checks []string         `json:"checks,omitempty"`
	Reason wellknown.Reason `json:"reason,omitempty"`
	Text   string           `json:"message,omitempty"`
}

// Advice says what would happen to each job of the files, without the others.
type Advice struct {
	Jobs []AdvisedJob `json:"jobs"`
}

// AdvisedJob says what would happen to a job. Spec is the spec of its unit, or empty if the job is invalid.
type AdvisedJob struct {
	Namespace string                           `json:"namespace"`
	Name      string                           `json:"name"`
	Spec      v1alpha1.QueueUnitSpec           `json:"spec"`
	Status    visibility.QueueUnitReviewStatus `json:"status"`
}

// Simulate lets the core decide about the trial. Settings that are not in objects have the defaults of
// kube-queue-controller.
func Simulate(t Trial, now time.Time) (*Simulation, error) {
	names := resources.NewNames()
	backend, warnings, err := tree.New(names, t.Root, tree.Options{Reclaim: true, PauseBorrowing: true})
	if err != nil {
		return &Simulation{Faults: manifest.Faults(err), Warnings: warnings}, nil
	}
	if err := chargeUnqueued(backend, names, t.Quotas); err != nil {
		return nil, err
	}
	s := simulator.Situation{Backend: backend, Core: scheduler.Options{MinRunTime: scheduler.DefaultMinRunTime}}
	checks := map[string][]string{}
	for i := range t.Queues {
		settings := codec.Settings(&t.Queues[i])
		checks[settings.Queue], settings.Checks = t.Queues[i].Spec.AdmissionChecks, scheduler.ChecksOf(nil)
		settings.PodsReady = scheduler.PodsReady{}
		s.Queues = append(s.Queues, settings)
		if policy := t.Queues[i].Status.Policy; settings.Policy == nil {
			s.Queues[i].Policy = queue.PolicyNamed(string(policy))
		}
	}
	reader := codec.Reader{Kinds: &codec.Kinds{}, Demand: func(unit *v1alpha1.QueueUnit) (quota.Demand, error) {
		return codec.Requests(names, unit)
	}}
	all := slices.Concat(t.Units, t.Jobs)
	for i := range all {
		u, err := reader.ReadComplete(&all[i])
		if err != nil {
			return nil, fmt.Errorf("unit %s/%s: %w", all[i].Namespace, all[i].Name, err)
		}
		if u.Over { // its pods are not known here
			if requested, err := reader.Demand(&all[i]); err == nil {
				u.Demand = requested
			}
		}
		s.Units = append(s.Units, u)
	}
	return outcome(t, all, simulator.Decide(s, now), backend, names, warnings, checks), nil
}

// chargeUnqueued charges the usage of pods that belong to no unit to the same nodes as now.
func chargeUnqueued(backend quota.Backend, names *resources.Names, quotas []visibility.QuotaSummary) error {
	own := map[string]corev1.ResourceList{}
	for _, q := range quotas { // parents come first
		own[q.Path] = q.Unqueued.DeepCopy()
		if above := parentOf(quotas, q.Path); above != "" {
			for name, amount := range q.Unqueued {
				left := own[above][name]
				left.Sub(amount)
				if own[above] == nil {
					own[above] = corev1.ResourceList{}
				}
				own[above][name] = left
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(own)) {
		for name, amount := range own[path] {
			if amount.Sign() <= 0 {
				delete(own[path], name)
			}
		}
		pods, err := resources.Request(names, own[path])
		if err != nil {
			return fmt.Errorf("pods that belong to no unit in quota %s: %w", path, err)
		}
		if len(pods) > 0 {
			backend.Nearest(path).Charge(&quota.Charge{Pods: pods, Unqueued: true})
		}
	}
	return nil
}

// parentOf returns the nearest node above the path; empty for the root.
func parentOf(quotas []visibility.QuotaSummary, path string) string {
	nearest := ""
	for _, q := range quotas {
		if strings.HasPrefix(path, q.Path+"/") && len(q.Path) > len(nearest) {
			nearest = q.Path
		}
	}
	return nearest
}

func outcome(t Trial, all []v1alpha1.QueueUnit, decided []simulator.Decided, backend quota.Backend, names *resources.Names, warnings []string, checks map[string][]string) *Simulation {
	result := &Simulation{Warnings: warnings, OverLimits: overLimits(backend, names)}
	var started, waiting []visibility.UnitSummary
	for i := range all {
		unit, d := &all[i], decided[i]
		in := ""
		if group, refusal := backend.Place(unit.Namespace, unit.Spec.QuotaName); refusal == nil {
			in = group.Queue()
		}
		if i >= len(t.Units) {
			job := SimulatedJob{Namespace: unit.Namespace, Name: unit.Name, Starts: d.Admitted, Quota: d.Quota, Reason: d.Reason, Text: d.Message}
			if d.Admitted {
				job.Reason, job.Text, job.Checks = "", "", checks[in]
			}
			result.Jobs = append(result.Jobs, job)
			continue
		}
		summary := summaryOf(unit, in)
		switch {
		case d.Admitted:
			started = append(started, summary)
		case d.Evicted:
			result.Evicted = append(result.Evicted, visibility.UnitGroup{Units: 1, First: summary}) // one per unit
		case unit.Status.Phase.Waits():
			summary.Reason = d.Reason
			waiting = append(waiting, summary)
		}
	}
	result.Started, result.Waiting = Grouped(started), Grouped(waiting)
	return result
}

func summaryOf(unit *v1alpha1.QueueUnit, queue string) visibility.UnitSummary {
	ref, submitted := &unit.Spec.ConsumerRef, metav1.NewTime(unit.CreationTimestamp.Time)
	if at := unit.Spec.SubmissionTime; at != nil {
		submitted.Time = arrival.Submitted(kinds.ByHand(ref.APIVersion, ref.Kind), at.Time, submitted.Time)
	}
	return visibility.UnitSummary{Namespace: unit.Namespace, Name: unit.Name, Kind: unit.Spec.ConsumerRef.Kind, Queue: queue,
		Phase: string(cmp.Or(unit.Status.Phase, v1alpha1.PhaseEnqueued)), Priority: unit.Spec.Priority, Requests: admitted(unit), SubmissionTime: new(submitted)}
}

// Grouped puts similar units into one group.
func Grouped(list []visibility.UnitSummary) []visibility.UnitGroup {
	var groups []visibility.UnitGroup
	place := map[string]int{}
	for _, u := range list {
		amounts := map[string]units.Amount{}
		for name, q := range u.Requests {
			amounts[string(name)] = units.Amount(q.String())
		}
		key := strings.Join([]string{u.Namespace, u.Queue, u.Kind, u.Phase, string(u.Reason), fmt.Sprint(u.Priority), units.RequestText(amounts)}, "\x00")
		at, known := place[key]
		if !known {
			place[key] = len(groups)
			groups = append(groups, visibility.UnitGroup{Units: 1, First: u})
			continue
		}
		groups[at].Units++
	}
	return groups
}

func overLimits(backend quota.Backend, names *resources.Names) []string {
	var exceeded []string
	for _, node := range backend.Usage() {
		for _, limit := range node.Max {
			name := names.Name(limit.ID)
			used, _ := node.Used.Get(limit.ID)
			if name == quota.JobsResource {
				used = node.Jobs
			}
			if used > limit.Value {
				exceeded = append(exceeded, fmt.Sprintf("%s in quota %s: used %s of max %s", name, node.Path, resources.Format(name, used), resources.Format(name, limit.Value)))
			}
		}
	}
	return exceeded
}
