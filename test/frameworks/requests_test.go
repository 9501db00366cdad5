package frameworks

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	helpers "k8s.io/component-helpers/resource"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/harness"
)

// expectRequests compares the unit's total and number of pods with the job's real pods, and the total with the
// specimen's.
func (s *story) expectRequests(unit *v1alpha1.QueueUnit, name string) {
	s.t.Helper()
	if total := harness.Amounts(s.t, s.total); !equality.Semantic.DeepEqual(total, unit.Spec.Resource) {
		s.t.Errorf("the unit of %s requests %v, want %v", name, text(unit.Spec.Resource), text(total))
	}
	harness.Eventually(s.t, patience, fmt.Sprintf("the pods of %s request what its unit says", name), func() (bool, string) {
		pods := s.Pods(name)
		sum := sumOf(pods)
		return equality.Semantic.DeepEqual(sum, unit.Spec.Resource) && len(pods) == countOf(unit),
			fmt.Sprintf("%d pods request %v, the unit for %v for %d pods", len(pods), text(sum), text(unit.Spec.Resource), countOf(unit))
	})
}

func countOf(unit *v1alpha1.QueueUnit) int {
	sum := 0
	for _, set := range unit.Spec.PodSets {
		sum += int(set.Count)
	}
	return sum
}

func sumOf(pods []corev1.Pod) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for i := range pods {
		for name, quantity := range helpers.PodRequests(&pods[i], helpers.PodResourcesOptions{}) {
			total := sum[name]
			total.Add(quantity)
			sum[name] = total
		}
	}
	return sum
}

func text(list corev1.ResourceList) string {
	var parts []string
	for name, quantity := range list {
		parts = append(parts, fmt.Sprintf("%s %s", name, quantity.String()))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// expectJobsOf checks how many batch Jobs the operator has created for the job.
func (s *story) expectJobsOf(name string) {
	s.t.Helper()
	list, err := s.Kube.BatchV1().Jobs(s.Namespace).List(s.t.Context(), metav1.ListOptions{})
	harness.Must(s.t, err)
	n := 0
	for i := range list.Items {
		owner := metav1.GetControllerOf(&list.Items[i])
		if owner != nil && owner.Name == name && (owner.Kind == s.kind || owner.Kind == s.sample.Related.Kind) {
			n++
		}
	}
	if n != s.jobs {
		s.t.Errorf("%s %s has %d Jobs, want %d", s.kind, name, n, s.jobs)
	}
}

// expectNoOtherUnits checks that Jobs and RayClusters that belong to other jobs have no units, even if they are
// suspended.
func (s *story) expectNoOtherUnits(jobs ...string) {
	s.t.Helper()
	units, err := s.Queue.SchedulingV1alpha1().QueueUnits(s.Namespace).List(s.t.Context(), metav1.ListOptions{})
	harness.Must(s.t, err)
	for _, unit := range units.Items {
		if ref := unit.Spec.ConsumerRef; ref.Kind != s.kind || !slices.Contains(jobs, ref.Name) {
			s.t.Errorf("there is a unit for %s %s, want units for the %ss %v only", ref.Kind, ref.Name, s.kind, jobs)
		}
	}
	if len(units.Items) != len(jobs) {
		s.t.Errorf("there are %d units, want one for each of %v", len(units.Items), jobs)
	}
}

// expectFree waits until the status of the tree shows no used quota for the story.
func (s *story) expectFree() {
	s.t.Helper()
	harness.Eventually(s.t, patience, "the quota is free", func() (bool, string) { return s.FreeNode("root/" + s.title()) })
}
