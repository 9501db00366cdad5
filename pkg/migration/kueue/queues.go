package kueue

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/migration"
)

// apiVersion is the apiVersion of kube-queue's objects.
var apiVersion = schedulingv1alpha1.SchemeGroupVersion.String()

// QueueNamespace is the namespace of Queues.
const QueueNamespace = "kube-queue"

// convertAll fills the result in order: what Queues refer to, Queues, the tree, and jobs. So a queue has its settings
// before its first job is admitted.
func (c *converter) convertAll() {
	c.readConfigurations()
	c.convertClasses()
	names := c.queueNames()
	var queues []*unstructured.Unstructured
	for _, n := range leaves(c.roots) {
		queues = append(queues, migration.Object(apiVersion, "Queue", QueueNamespace, names[n], map[string]any{"spec": c.queueSpec(n)}))
	}
	c.findUncovered()
	c.result.Objects = append(c.before, queues...)
	if len(c.roots) > 0 {
		c.result.Objects = append(c.result.Objects, c.tree())
		c.stepNamespaces()
	}
	c.convertJobs()
	c.result.Objects = append(c.result.Objects, c.behind...)
	if c.workloads > 0 {
		c.result.Find("Workload", "(all)", fmt.Sprintf("%d objects are not converted: kube-queue creates a QueueUnit for each queued job", c.workloads), "submit the jobs that wait again, and let those that run end")
	}
	if c.liveJobs > 0 {
		c.result.Step("%d jobs in the input exist in a cluster already, and are not converted. Let those that run end, and submit those that wait again from their converted manifests.", c.liveJobs)
	}
}

// queueSpec returns the settings of the Queue of a ClusterQueue.
func (c *converter) queueSpec(n *node) map[string]any {
	spec, written := n.queue.Spec, map[string]any{}
	switch spec.QueueingStrategy {
	case "StrictFIFO":
		written["policy"] = string(schedulingv1alpha1.PolicyBlock)
	case "", "BestEffortFIFO":
		written["policy"] = string(schedulingv1alpha1.PolicyPriority)
	default:
		c.result.Find(n.object, "spec.queueingStrategy", fmt.Sprintf("the strategy %q is unknown", spec.QueueingStrategy), "set spec.policy of the Queue")
	}
	switch spec.StopPolicy {
	case "", "None":
	case "Hold":
		written["stop"] = string(schedulingv1alpha1.StopHold)
	case "HoldAndDrain":
		written["stop"] = string(schedulingv1alpha1.StopDrain)
	default:
		c.result.Find(n.object, "spec.stopPolicy", fmt.Sprintf("the policy %q is unknown", spec.StopPolicy), "set spec.stop of the Queue")
	}
	if preemption := c.preemption(n); preemption != nil {
		written["preemption"] = preemption
	}
	if checks := c.checksOf(n); len(checks) > 0 {
		written["admissionChecks"] = anys(checks)
	}
	if c.waits != "" {
		written["podsReadyTimeout"] = c.waits
		if c.waitsBlock {
			written["blockUntilPodsReady"] = true
		}
	}
	c.findWeight(n.object, spec.FairSharing)
	c.findFlavors(n)
	if spec.AdmissionScope != nil && spec.AdmissionScope.AdmissionMode != "NoAdmissionFairSharing" {
		c.result.Find(n.object, "spec.admissionScope", "jobs of one queue are ordered by priority and submission only, not by what their namespace has used",
			"give each namespace a quota node of its own")
	}
	if spec.ConcurrentAdmissionPolicy != nil {
		c.result.Find(n.object, "spec.concurrentAdmissionPolicy", "a job has one unit, and there are no flavors between which it could move", "nothing")
	}
	return written
}

// preemption converts the settings of preemption. Kueue does not protect any job from it, so minRunTime is 0 where
// jobs of the queue can be evicted for others.
func (c *converter) preemption(n *node) map[string]any {
	p := n.queue.Spec.Preemption
	within := schedulingv1alpha1.PreemptNever
	switch p.WithinClusterQueue {
	case "", "Never":
	case "LowerPriority":
		within = schedulingv1alpha1.PreemptLowerPriority
	case "LowerOrNewerEqualPriority":
		within = schedulingv1alpha1.PreemptLowerPriority
		c.result.Find(n.object, "spec.preemption.withinClusterQueue", "jobs of an equal priority evict each other in no case; LowerPriority is set", "nothing")
	default:
		c.result.Find(n.object, "spec.preemption.withinClusterQueue", fmt.Sprintf("the policy %q is unknown", p.WithinClusterQueue), "set spec.preemption.withinQueue of the Queue")
	}
	inCohort := n.parent != nil
	reclaimed := inCohort && reclaims(rootOf(n))
	switch {
	case p.ReclaimWithinCohort == "LowerPriority" && inCohort:
		c.result.Find(n.object, "spec.preemption.reclaimWithinCohort", "priorities of different queues are never compared: a job that is within the guarantee gets it back from jobs of any priority",
			"set the label "+wellknown.PreemptibleLabel+": \"false\" on jobs that must not be evicted")
	case (p.ReclaimWithinCohort == "" || p.ReclaimWithinCohort == "Never") && reclaimed:
		c.result.Find(n.object, "spec.preemption.reclaimWithinCohort", "reclaim is a setting of those who lose jobs, and the other queues of the cohort get theirs back: so this one does, too",
			"nothing; or set the attribute "+wellknown.ReclaimAttribute+": never at the nodes whose jobs must not be evicted for others")
	}
	if b := p.BorrowWithinCohort; b.Policy != "" && b.Policy != "Never" {
		c.result.Find(n.object, "spec.preemption.borrowWithinCohort", "a job that would borrow evicts no job of another queue", "give the queue a greater min")
	}
	if within == schedulingv1alpha1.PreemptNever && !reclaimed {
		return nil
	}
	return map[string]any{"withinQueue": string(within), "minRunTime": "0s"}
}

// maxChecks is the maximum number of checks in a Queue.
const maxChecks = 8

func (c *converter) checksOf(n *node) []string {
	spec := n.queue.Spec
	wanted := slices.Clone(spec.AdmissionChecks)
	for _, rule := range spec.AdmissionChecksStrategy.AdmissionChecks {
		wanted = append(wanted, rule.Name)
		if len(rule.OnFlavors) > 0 {
			c.result.Find(n.object, "spec.admissionChecksStrategy: "+rule.Name+": onFlavors", "a check applies to all jobs of a queue",
				"limit a ProvisioningRequestConfig to the jobs that request certain resources with managedResources")
		}
	}
	var checks []string
	for _, name := range wanted {
		controller, has := c.checks[name]
		switch {
		case len(name) > maxCheckName:
			c.result.Find(n.object, "spec.admissionChecks: "+name, "the name is too long for an AdmissionCheck, so the queue admits jobs without the check",
				"rename the check, and list it in spec.admissionChecks of the Queue")
			continue
		case !has:
			c.result.Find(n.object, "spec.admissionChecks: "+name, "the input has no AdmissionCheck of this name, so the jobs of the queue wait until it exists",
				"add the AdmissionCheck to the input, or remove it from the Queue")
		case controller == multiKueue:
			continue
		}
		if len(checks) == maxChecks {
			c.result.Find(n.object, "spec.admissionChecks: "+name, fmt.Sprintf("a Queue lists at most %d checks", maxChecks), "combine checks in one controller")
			continue
		}
		if !slices.Contains(checks, name) {
			checks = append(checks, name)
		}
	}
	return checks
}

// findFlavors reports resources with several flavors.
func (c *converter) findFlavors(n *node) {
	flavors := map[string][]string{}
	for _, p := range n.pairs() {
		flavors[p.resource] = append(flavors[p.resource], p.flavor)
	}
	var summed []string
	for _, resource := range slices.Sorted(maps.Keys(flavors)) {
		if names := flavors[resource]; len(names) > 1 {
			summed = append(summed, resource+" of "+strings.Join(names, " and "))
		}
	}
	if len(summed) == 0 {
		return
	}
	c.result.Find(n.object, "spec.resourceGroups", "a node has one quota for each resource, so those of several flavors are added up: "+strings.Join(summed, "; "),
		"let jobs select their nodes; for GPUs of different types, give each type a quota with the value devices.types of the chart")
	if f := n.queue.Spec.FlavorFungibility; f.WhenCanBorrow == "TryNextFlavor" || f.WhenCanPreempt == "MayStopSearch" || f.WhenCanPreempt == "Preempt" || f.Preference == "PreemptionOverBorrowing" {
		c.result.Find(n.object, "spec.flavorFungibility", "kube-queue chooses no flavor", "nothing")
	}
}

// findUncovered reports that a resource without any quota is not limited.
func (c *converter) findUncovered() {
	covered := c.covered()
	if len(covered) == 0 {
		return
	}
	c.result.Step("A resource without a quota is not limited: add those that jobs request to the max of the nodes that must not use them. Kueue admits no job that requests one. The quotas are for %s.",
		strings.Join(slices.Sorted(maps.Keys(covered)), ", "))
}
