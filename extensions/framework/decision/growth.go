package decision

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
	"kube-queue.dev/kube-queue/pkg/requests"
)

// A queue can gate the growth of its jobs. The release then annotates the templates of the pods that a job can add, so
// that all these pods wait at a gate. The gate lets as many pass as the job was admitted with. More pods need another
// unit, a unit for growth. If it is admitted with fewer pods, one more unit asks for the rest. All pods of a pod set
// are alike: only their number counts. Pods of an Indexed Job pass in the order of their indexes, because the others
// may need the first.

// GrowingPod is a pod of a job whose growth is gated.
type GrowingPod struct {
	*corev1.Pod
	// Set is its pod set; empty if the pod passes without growth.
	Set string
}

// Resize is a unit for growth that needs another spec.
type Resize struct {
	Unit *v1alpha1.QueueUnit
	Spec v1alpha1.QueueUnitSpec
}

// Evicted is an evicted unit for growth, and how many pods end because of it.
type Evicted struct {
	Unit *v1alpha1.QueueUnit
	Pods int32
}

// Growth is the next step for the pods that a job adds after its admission.
type Growth struct {
	// Pass are the pods whose gates open, and Delete those that have passed and must end, because a unit for growth is
	// evicted.
	Pass, Delete []GrowingPod
	// Evicted are the units whose pods are deleted.
	Evicted []Evicted
	// Create are the specs of new units, Resize the units that need another spec, and Leave the units to delete.
	Create []v1alpha1.QueueUnitSpec
	Resize []Resize
	Leave  []*v1alpha1.QueueUnit
	// Run are the units whose pods have begun to pass, and Stop those whose pods are gone.
	Run, Stop []*v1alpha1.QueueUnit

	kept string
}

// IsGated reports whether the growth of an admitted unit's job is gated. Admission checks do not decide about growth,
// so a unit with checks grows without a gate.
func IsGated(unit *v1alpha1.QueueUnit) bool {
	return unit != nil && unit.Status.Growth == v1alpha1.GrowthGate && len(unit.Status.AdmissionChecks) == 0
}

// GateGrowth annotates the pods of the pod sets that can grow, so that they wait at the gate. The release removes this
// annotation from other pod sets: with it, an owner could claim a pod set that requests less.
func (a PodAnnotations) GateGrowth(adapter framework.Adapter, job framework.Object, unit *v1alpha1.QueueUnit, recorded PodAnnotations) {
	growing, is := adapter.(framework.Growing)
	if !is || !IsGated(unit) {
		return
	}
	for set := range growing.Growing(job, nil) {
		a.set(set, wellknown.GrowthAnnotation, set)
		for i := range unit.Spec.PodSets {
			recorded.set(unit.Spec.PodSets[i].Name, wellknown.GrowthAnnotation, "")
		}
	}
}

// GrowthSuffix follows the name of the job in the names of its units for growth.
const GrowthSuffix = "-growth"

// GrowthName returns the name of a unit for growth. The number distinguishes the units of one pod set.
func GrowthName(kind, job string, uid types.UID, set string, number int) string {
	return UnitName(kind, job+GrowthSuffix, types.UID(fmt.Sprintf("%s/%s/%d", uid, set, number)))
}

// GrowthOf returns what to do about the growth of a job. unit is the unit of the job, grown are those for growth, wanted
// is how many pods the job has in each pod set that can grow, and pods are those that are or were at the gate.
// kept is why no pods can be deleted for other jobs; empty if they can.
func GrowthOf(unit *v1alpha1.QueueUnit, grown []*v1alpha1.QueueUnit, wanted map[string]int32, pods []GrowingPod, kept string) (Growth, error) {
	g := Growth{kept: kept}
	if lifecycle.RestoredFor(unit) > 0 { // it will be charged soon
		return g, nil
	}
	if !unit.Status.Phase.HoldsQuota() {
		g.Leave = grown // the job has ended, or starts again with the size that its owner wrote
		return g, nil
	}
	if lifecycle.EvictionOf(unit) != lifecycle.EvictionNone || unit.Status.Phase == v1alpha1.PhaseReserved {
		for _, one := range grown {
			if !one.Status.Phase.HoldsQuota() {
				g.Leave = append(g.Leave, one)
			}
		}
		return g, nil
	}
	bySet := map[string][]*v1alpha1.QueueUnit{}
	for _, one := range grown {
		if len(one.Spec.PodSets) != 1 { // kube-queue did not write it
			g.Leave = append(g.Leave, one)
			continue
		}
		bySet[one.Spec.PodSets[0].Name] = append(bySet[one.Spec.PodSets[0].Name], one)
	}
	for i := range unit.Spec.PodSets {
		set := &unit.Spec.PodSets[i]
		units := bySet[set.Name]
		delete(bySet, set.Name)
		if err := g.add(unit, set, units, wanted[set.Name], pods); err != nil {
			return Growth{}, err
		}
	}
	for _, units := range bySet {
		g.Leave = append(g.Leave, units...)
	}
	for _, pod := range pods {
		if pod.Set == "" && framework.IsGated(pod.Pod) && pod.DeletionTimestamp == nil {
			g.Pass = append(g.Pass, pod)
		}
	}
	return g, nil
}

// PassCopies clears the pod sets of pods of a job whose growth is not gated, if its release did not annotate them: their
// template has a copy of the annotation of another job. It returns whether the release annotated any.
func PassCopies(job framework.Object, pods []GrowingPod) (annotated bool) {
	recorded := RecordedOf(job)
	for i := range pods {
		if _, is := recorded[pods[i].Set][wellknown.GrowthAnnotation]; is {
			annotated = true
		} else {
			pods[i].Set = ""
		}
	}
	return annotated
}

// add decides about one pod set.
func (g *Growth) add(unit *v1alpha1.QueueUnit, set *v1alpha1.PodSet, units []*v1alpha1.QueueUnit, wanted int32, pods []GrowingPod) error {
	slices.SortFunc(units, func(a, b *v1alpha1.QueueUnit) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	var holding, waiting, evicted []*v1alpha1.QueueUnit
	for _, one := range units {
		switch phase := one.Status.Phase; {
		case phase.Ended():
			g.Leave = append(g.Leave, one)
		case phase.Waits() || phase == v1alpha1.PhaseReserved:
			waiting = append(waiting, one)
		case lifecycle.EvictionOf(one) != lifecycle.EvictionNone:
			evicted = append(evicted, one)
		default:
			holding = append(holding, one)
		}
	}
	base := lifecycle.AdmittedPods(unit, set)
	admitted := base + podsOf(holding)
	if err := g.ask(unit, set, holding, waiting, evicted, wanted-admitted); err != nil {
		return err
	}

	var passed, gated []GrowingPod
	leaving := int32(0)
	for _, pod := range pods {
		switch {
		case pod.Set != set.Name || framework.HasEnded(pod.Pod):
		case !framework.IsGated(pod.Pod):
			passed = append(passed, pod)
			if pod.DeletionTimestamp != nil {
				leaving++
			}
		case pod.DeletionTimestamp == nil:
			gated = append(gated, pod)
		}
	}
	inOrder := func(a, b GrowingPod) int {
		return cmp.Or(cmp.Compare(indexOf(a), indexOf(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	}
	slices.SortFunc(passed, inOrder)
	slices.SortFunc(gated, inOrder)
	running := int32(len(passed))
	if free := admitted - running; free > 0 {
		g.Pass = append(g.Pass, gated[:min(int(free), len(gated))]...)
		running += min(free, int32(len(gated)))
	}
	g.end(passed, evicted, running, leaving, admitted)
	for _, one := range holding {
		if one.Status.Phase == v1alpha1.PhaseDequeued && running > base {
			g.Run = append(g.Run, one)
		}
		base += podsOf([]*v1alpha1.QueueUnit{one})
	}
	return nil
}

// indexOf returns the index of a pod of an Indexed Job; 0 for other pods.
func indexOf(pod GrowingPod) int {
	index, _ := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation])
	return index
}

// PassedBefore returns how many pods of a pod set have passed the gate and not ended, minus those that units for growth
// were admitted with. gated is whether the set has pods that are or were at the gate.
func PassedBefore(pods []GrowingPod, grown []*v1alpha1.QueueUnit, set string) (passed int32, gated bool) {
	for _, pod := range pods {
		if pod.Set == set {
			gated = true
			if !framework.HasEnded(pod.Pod) && !framework.IsGated(pod.Pod) {
				passed++
			}
		}
	}
	for _, unit := range grown {
		if len(unit.Spec.PodSets) == 1 && unit.Spec.PodSets[0].Name == set && unit.Status.Phase.HoldsQuota() {
			passed -= lifecycle.AdmittedPods(unit, &unit.Spec.PodSets[0])
		}
	}
	return max(passed, 0), gated
}

// AdmittedAreReady reports whether each pod set that can grow has as many pods that are ready, or have succeeded since
// the last release, as the unit was admitted with. There must be at least one: it alone shows that others, such as the
// head of a cluster, are ready.
func AdmittedAreReady(unit *v1alpha1.QueueUnit, growing map[string]int32, pods []GrowingPod) bool {
	up := map[string]int32{}
	for _, pod := range pods {
		isReady := func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue }
		succeeded := pod.Status.Phase == corev1.PodSucceeded && strings.HasPrefix(pod.Annotations[wellknown.ReleasedAnnotation], Attempt(unit)+"/")
		if succeeded || pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, isReady) {
			up[pod.Set]++
		}
	}
	for i := range unit.Spec.PodSets {
		set := &unit.Spec.PodSets[i]
		if _, grows := growing[set.Name]; grows && up[set.Name] < lifecycle.AdmittedPods(unit, set) {
			return false
		}
	}
	return len(growing) > 0 && len(up) > 0
}

// ask asks for the missing pods of a job. If missing is negative, it gives back pods that the job no longer has.
func (g *Growth) ask(unit *v1alpha1.QueueUnit, set *v1alpha1.PodSet, holding, waiting, evicted []*v1alpha1.QueueUnit, missing int32) error {
	for i := len(holding) - 1; i >= 0; i-- {
		has := podsOf(holding[i : i+1])
		left := max(has+min(missing, 0), 0)
		missing += has - left
		if left == 0 {
			g.Leave = append(g.Leave, holding[i])
			continue
		}
		if left == has && ptr.Equal(holding[i].Spec.MaximumExecutionTimeSeconds, unit.Spec.MaximumExecutionTimeSeconds) {
			continue
		}
		spec, err := g.spec(unit, set, left)
		if err != nil {
			return err
		}
		g.Resize = append(g.Resize, Resize{holding[i], spec})
	}
	for i, one := range waiting {
		if i > 0 || missing <= 0 {
			g.Leave = append(g.Leave, one)
			continue
		}
		spec, err := g.spec(unit, set, missing)
		if err != nil {
			return err
		}
		if one.Status.Phase != v1alpha1.PhaseReserved && len((&Desired{Spec: spec}).Changes(one)) > 0 {
			g.Resize = append(g.Resize, Resize{one, spec})
		}
	}
	if missing <= 0 || len(waiting) > 0 || len(evicted) > 0 { // those will wait again
		return nil
	}
	spec, err := g.spec(unit, set, missing)
	if err == nil {
		g.Create = append(g.Create, spec)
	}
	return err
}

// end ends the newest pods that only evicted units have let through. The loss of a unit ends no pods.
func (g *Growth) end(passed []GrowingPod, evicted []*v1alpha1.QueueUnit, running, leaving, admitted int32) {
	if len(evicted) == 0 {
		return
	}
	if running <= admitted {
		for _, one := range evicted {
			if lifecycle.EvictionOf(one).UnderWay() {
				g.Stop = append(g.Stop, one)
			}
		}
		return
	}
	if g.kept != "" { // they end with the job, which is evicted too
		return
	}
	ends := leaving
	for over := min(running-leaving-admitted, podsOf(evicted)-leaving); over > 0 && len(passed) > 0; {
		last := passed[len(passed)-1]
		passed = passed[:len(passed)-1]
		if last.DeletionTimestamp == nil {
			g.Delete = append(g.Delete, last)
			ends++
			over--
		}
	}
	for _, one := range evicted {
		if pods := min(podsOf([]*v1alpha1.QueueUnit{one}), ends); pods > 0 && len(g.Delete) > 0 && lifecycle.EvictionOf(one).UnderWay() {
			g.Evicted = append(g.Evicted, Evicted{one, pods})
			ends -= pods
		}
	}
}

// podsOf returns how many pods the units for growth were admitted with.
func podsOf(units []*v1alpha1.QueueUnit) (pods int32) {
	for _, unit := range units {
		pods += lifecycle.AdmittedPods(unit, &unit.Spec.PodSets[0])
	}
	return pods
}

// spec returns the spec of a unit for pods that the job adds to a pod set. The unit has the job's place in the queue.
// It ends with the job, which was admitted earlier, so it never exceeds the job's maximum execution time.
func (g *Growth) spec(unit *v1alpha1.QueueUnit, set *v1alpha1.PodSet, pods int32) (v1alpha1.QueueUnitSpec, error) {
	total, err := requests.Times(set.Requests, pods)
	if err != nil {
		return v1alpha1.QueueUnitSpec{}, fmt.Errorf("pod set %q (%d more pods): %w", set.Name, pods, err)
	}
	of := &unit.Spec
	grown := *set.DeepCopy()
	grown.Count, grown.MinCount = pods, nil
	if pods > 1 {
		grown.MinCount = new(int32(1))
	}
	return v1alpha1.QueueUnitSpec{
		ConsumerRef: of.ConsumerRef, Growth: true, PodSets: []v1alpha1.PodSet{grown}, Resource: total,
		Priority: of.Priority, PriorityClassName: of.PriorityClassName, SubmissionTime: of.SubmissionTime, QuotaName: of.QuotaName,
		MaximumExecutionTimeSeconds: of.MaximumExecutionTimeSeconds, ExpectedRunTimeSeconds: of.ExpectedRunTimeSeconds,
		Active: new(true), Preemptible: new(ptr.Deref(of.Preemptible, true)), Unstoppable: g.kept,
	}, nil
}
