package frameworks

import (
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/acceptance/kinds"
	"kube-queue.dev/kube-queue/test/harness"
)

// ready returns the specimens, each with the story of a queue that waits for pods.
func ready(specimens []specimen) []specimen {
	var all []specimen
	for _, s := range specimens {
		if s.test == nil {
			s.name, s.test = s.extension+"-ready", (*story).taleOfReadiness
			all = append(all, s)
		}
	}
	return all
}

// lonely has, by kind, the path of a pod template without spec. In the story, all but one of its pods find no node.
// Other kinds do not create their pods from a template of the job, create them one by one, or have only one.
var lonely = map[string][]any{
	"Job":        {"spec", "template"},
	"JobSet":     {"spec", "replicatedJobs", 1, "template", "spec", "template"},
	"TFJob":      {"spec", "tfReplicaSpecs", "Worker", "template"},
	"PyTorchJob": {"spec", "pytorchReplicaSpecs", "Worker", "template"},
	"XGBoostJob": {"spec", "xgbReplicaSpecs", "Worker", "template"},
	"PaddleJob":  {"spec", "paddleReplicaSpecs", "Worker", "template"},
	"JAXJob":     {"spec", "jaxReplicaSpecs", "Worker", "template"},
	"MPIJob":     {"spec", "mpiReplicaSpecs", "Worker", "template"},
	"RayCluster": {"spec", "workerGroupSpecs", 0, "template"},
	"RayJob":     {"spec", "rayClusterSpec", "workerGroupSpecs", 0, "template"},
}

// taleOfReadiness: the unit of a job shows that its pods are ready. If one of them finds no node, the unit does not
// show it, and the job is stopped.
func (s *story) taleOfReadiness() {
	queue := "root-" + s.title()
	s.PatchQueue(queue, `{"spec":{"podsReadyTimeout":"10m"}}`)
	s.submit(job{name: "good", runs: harness.UntilFinished})
	for !s.awaitsPods("good") { // the controller saw the job before its queue changed
		s.delete("good", background)
		s.submit(job{name: "good", runs: harness.UntilFinished})
	}
	s.waitForPodsReady("good")
	s.delete("good", background)

	if path := lonely[s.kind]; path != nil {
		s.submitLonely("stuck", path)
		s.expectSomePodsRun("stuck")
		if conditions := s.Unit(s.kind, "stuck").Status.Conditions; !apimeta.IsStatusConditionFalse(conditions, wellknown.ConditionPodsReady) {
			s.t.Errorf("conditions of the unit of stuck are %+v, want PodsReady=False", conditions)
		}
		s.PatchQueue(queue, `{"spec":{"podsReadyTimeout":"1s"}}`)
		s.WaitForEvent("stuck", string(wellknown.ReasonPodsReadyTimeout))
		s.WaitForPhase(s.kind, "stuck", v1alpha1.PhaseBackoff)
		s.delete("stuck", background)
	}
	s.expectFree()
}

// awaitsPods reports whether the queue waited for the pods of a job when it was admitted.
func (s *story) awaitsPods(name string) bool {
	s.t.Helper()
	unit := s.WaitForPhase(s.kind, name, v1alpha1.PhaseRunning)
	return apimeta.FindStatusCondition(unit.Status.Conditions, wellknown.ConditionPodsReady) != nil
}

func (s *story) waitForPodsReady(name string) {
	s.t.Helper()
	s.WaitForPhase(s.kind, name, v1alpha1.PhaseRunning)
	harness.Eventually(s.t, time.Minute, fmt.Sprintf("the unit of %s %s shows that its pods are ready", s.kind, name), func() (bool, string) {
		unit := s.Unit(s.kind, name)
		return apimeta.IsStatusConditionTrue(unit.Status.Conditions, wellknown.ConditionPodsReady), fmt.Sprint(unit.Status.Conditions)
	})
	for _, pod := range s.Pods(name) {
		if phase := pod.Status.Phase; s.kind != "RayJob" && s.kind != "Workflow" && phase != corev1.PodRunning && phase != corev1.PodSucceeded {
			s.t.Errorf("the pods of %s are ready, but pod %s is %s", name, pod.Name, phase)
		}
	}
}

// expectSomePodsRun waits until some pods of the job run and others have found no node.
func (s *story) expectSomePodsRun(name string) {
	s.t.Helper()
	harness.Eventually(s.t, time.Minute, fmt.Sprintf("only some pods of %s %s find a node", s.kind, name), func() (bool, string) {
		run, waits := 0, 0
		for _, pod := range s.Pods(name) {
			if pod.Status.Phase == corev1.PodRunning {
				run++
			} else if pod.Spec.NodeName == "" {
				waits++
			}
		}
		return run > 0 && waits > 0, fmt.Sprintf("%d run, %d wait", run, waits)
	})
}

// submitLonely creates the job with an anti-affinity between the pods of one template, across all nodes.
func (s *story) submitLonely(name string, path []any) {
	s.t.Helper()
	object := s.manifest(job{name: name, runs: harness.UntilFinished})
	template, found := inTree(object.Object, path)
	if !found {
		s.t.Fatalf("the manifest has no %v", path)
	}
	label := map[string]any{"lonely": name}
	maps.Copy(inside(inside(template, "metadata"), "labels"), label)
	inside(template, "spec")["affinity"] = map[string]any{"podAntiAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": []any{
		map[string]any{"topologyKey": corev1.LabelOSStable, "labelSelector": map[string]any{"matchLabels": label}},
	}}}
	_, err := s.objects().Create(s.t.Context(), object, metav1.CreateOptions{})
	harness.Must(s.t, err)
}

// inTree returns the map at a path of keys and indexes.
func inTree(value any, path []any) (map[string]any, bool) {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			fields, _ := value.(map[string]any)
			value = fields[step]
		case int:
			items, _ := value.([]any)
			if step >= len(items) {
				return nil, false
			}
			value = items[step]
		}
	}
	found, is := value.(map[string]any)
	return found, is
}

func TestTheLonelyTemplatesAreInTheManifests(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range specimens(t, func(kinds.Sample) bool { return true }) {
		path, listed := lonely[s.kind]
		if _, found := inTree(s.manifest(job{name: "a"}).Object, path); listed && !found {
			t.Errorf("the manifest of %s has no %v", s.kind, path)
		}
		seen[s.kind] = true
	}
	for kind := range lonely {
		if !seen[kind] {
			t.Errorf("there is no specimen of %s", kind)
		}
	}
}
