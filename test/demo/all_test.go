package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/registry"
)

// root returns the folder of the repository.
func root(t *testing.T) string {
	t.Helper()
	dir, err := repository(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// parsed reads the documents of a manifest of the repository.
func parsed[T any](t *testing.T, file string) []T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), file))
	if err != nil {
		t.Fatal(err)
	}
	var objects []T
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var object T
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		objects = append(objects, object)
	}
	return objects
}

// A job that requests more than the quota would wait forever.
func TestAllHasAJobOfEachKindThatFitsInTheQuota(t *testing.T) {
	kinds, err := shownKinds()
	if err != nil {
		t.Fatal(err)
	}
	limit := parsed[quotav1beta1.ElasticQuotaTree](t, allQuota)[0].Spec.Root.Children[0].Max
	if len(limit) == 0 {
		t.Fatal("the quota has no limit")
	}
	for _, k := range kinds {
		for name, most := range limit {
			if amount := k.Total[name]; amount.Cmp(most) > 0 || name == corev1.ResourceCPU && amount.IsZero() {
				t.Errorf("%s requests %s of %s %s", k.Name, amount.String(), most.String(), name)
			}
		}
	}
	extensions, manifests := files(kinds)
	if enabled, err := registry.Parse(strings.Join(extensions, ",")); err != nil || len(enabled) != len(kinds) || len(kinds) < len(registry.All())-1 {
		t.Errorf("%d kinds are enabled, and %d are shown: %v", len(enabled), len(kinds), err)
	}
	for i, j := range newShow(kinds) {
		text, err := os.ReadFile(filepath.Join(root(t), manifests[i]))
		if err != nil || !strings.Contains(string(text), "kind: "+j.kind+"\n") || !strings.Contains(string(text), "name: "+j.name+"\n") {
			t.Errorf("%s is not in %s: %v", j, manifests[i], err)
		}
	}
}

func TestTheShowEndsWhenItsJobsHaveEnded(t *testing.T) {
	pi, cluster := jobName{"default", "pi"}, jobName{"default", "notebook"}
	s := show{{jobName: pi, kind: "Job"}, {jobName: cluster, kind: "RayCluster", endless: true}}
	var out strings.Builder
	see := func(rows ...unit) (begun []*entry) {
		t.Helper()
		begun, err := s.see(&out, 0, rows)
		if err != nil {
			t.Fatal(err)
		}
		return begun
	}
	job := unit{job: pi, kind: "Job", phase: v1alpha1.PhaseEnqueued, reason: "QuotaExceeded", message: "no room"}
	ray := unit{job: cluster, kind: "RayCluster", phase: v1alpha1.PhaseRunning}
	if begun := see(job); len(begun) != 0 || s.missing() != "Job pi, RayCluster notebook" {
		t.Errorf("%v have begun, and %s is missing", begun, s.missing())
	}
	if begun := see(job, ray); len(begun) != 1 || begun[0].argument() != "raycluster/notebook" {
		t.Errorf("%v have begun", begun)
	}
	job.phase, job.reason, job.message = v1alpha1.PhaseSucceeded, "", ""
	if begun := see(job, ray); len(begun) != 0 || s.missing() != "RayCluster notebook" {
		t.Errorf("%v have begun, and %s is missing", begun, s.missing())
	}
	s[1].deleted = true
	see(job)
	if err := s.someWaited(); err != nil || s.missing() != "" {
		t.Errorf("%s is missing: %v", s.missing(), err)
	}
	const want = `    0.0s Job              pi                 Enqueued   QuotaExceeded: no room
    0.0s RayCluster       notebook           Running
    0.0s Job              pi                 Succeeded
    0.0s RayCluster       notebook           deleted
`
	if out.String() != want {
		t.Errorf("shown:\n%swant:\n%s", out.String(), want)
	}
	job.phase = v1alpha1.PhaseFailed
	if _, err := s.see(&out, 0, []unit{job}); err == nil || !strings.Contains(err.Error(), "Job pi failed; run kubectl describe job/pi") {
		t.Errorf("a failed job: %v", err)
	}
	s = show{{jobName: pi, kind: "Job", there: true}}
	if _, err := s.see(&out, 0, nil); err == nil || !strings.Contains(err.Error(), "Job pi was deleted before its end") {
		t.Errorf("a deleted job: %v", err)
	}
	if err := s.someWaited(); err == nil {
		t.Error("no job has waited, and nobody says so")
	}
}
