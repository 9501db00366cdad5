package jobextensions

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/acceptance/kinds"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/testmode"
)

// runTime finds the run times of pods that end by themselves in a manifest.
var runTime = regexp.MustCompile(`("localcluster\.kube-queue\.dev/run-time":)"[0-9][^"]*"`)

// sampleOf returns the kind of an example. Its pods run until the job is stopped.
func sampleOf(sample kinds.Sample) kind {
	job := sample.Job()
	job.SetName("a")
	annotations := job.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[mark] = "true"
	job.SetAnnotations(annotations)
	return kind{name: sample.Kind.Kind, resource: sample.GVR(sample.Version), suspend: sample.SuspendPath, manifest: runTime.ReplaceAllString(asJSON(job.Object), `${1}"10m"`)}
}

// podsHave waits until this many pods have a value of the annotation, and no pod has another one. The pods of an
// operator's own template have none.
func (s *story) podsHave(value string, count int32, unplaced string) {
	s.Helper()
	s.eventually(fmt.Sprintf("%d pods with %q", count, value), func() string {
		list, err := s.core.CoreV1().Pods(s.ns).List(s.Context(), metav1.ListOptions{})
		s.must(err)
		var have int32
		for i := range list.Items {
			pod := &list.Items[i]
			switch got := pod.Annotations[consume]; {
			case got == value:
				have++
			case got != "" || unplaced == "":
				return fmt.Sprintf("pod %s has %q", pod.Name, got)
			}
		}
		if have < count {
			return fmt.Sprintf("%d of %d pods have it, and the job has the status %s", have, len(list.Items), asJSON(s.get().Object["status"]))
		}
		return ""
	})
}

func TestTheOperatorsPassAnnotationsOnToPods(t *testing.T) {
	testmode.OnlyInTestAll(t, "test/e2e/provisioning starts jobs of four kinds on nodes that only pods with the annotations may use")
	operators, err := clustertest.Operators(t.Context())
	harness.Must(t, err)
	together, instead := clustertest.SideBySide(operators)
	for name, run := range map[string][]clustertest.Operator{"side by side": together, "instead of another": instead} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			passOn(t, run)
		})
	}
}

// passOn tests the kinds of these operators.
func passOn(t *testing.T, operators []clustertest.Operator) {
	all, err := kinds.All()
	harness.Must(t, err)
	var samples []kinds.Sample
	var enabled []string
	for _, sample := range all {
		for _, operator := range operators {
			if operator.Runs(sample.Kind) && len(sample.Places) > 0 {
				samples, enabled = append(samples, sample), append(enabled, sample.Name)
			}
		}
	}
	c := clustertest.ForTest(t, clustertest.Options{Nodes: 2, NodeCPU: "100", NodeMemory: "500Gi", NodeGPUs: 20,
		Operators: clustertest.Names(operators), PodRunTime: 10 * time.Minute})
	stop := startFor(t, c, strings.Join(enabled, ","))
	t.Cleanup(stop)
	for _, sample := range samples {
		t.Run(sample.Name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, c, sampleOf(sample))
			unit := s.hasUnit("that is active", func(u *v1alpha1.QueueUnit) bool { return *u.Spec.Active && len(u.Spec.PodSets) > 0 })
			// The example of RayJob lacks the submitter's template.
			unplaced, count := "", int32(0)
			updates := func(value string) map[string]map[string]string {
				updates := map[string]map[string]string{}
				for _, set := range unit.Spec.PodSets {
					updates[set.Name] = map[string]string{consume: value}
				}
				return updates
			}
			for _, set := range unit.Spec.PodSets {
				if set.Name == "submitter" {
					unplaced = set.Name
					continue
				}
				count += set.Count
			}
			s.admitWithUpdates(updates("first"))
			s.podsHave("first", count, unplaced)
			if unplaced != "" {
				s.event(corev1.EventTypeWarning, "PodsNotAnnotated", "(pod set "+unplaced+")")
			}
			s.inPhase(v1alpha1.PhaseRunning)
			if sample.Kind.Kind == "Workflow" {
				return // an eviction does not stop it
			}
			s.evictedAndQueued()
			s.admitWithUpdates(updates("second"))
			s.podsHave("second", count, unplaced)
		})
	}
}
