package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/extensions/registry"
)

// root is the repository's folder.
func root(t *testing.T) string {
	t.Helper()
	dir, err := repository(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestThePairIsTwoTFJobs(t *testing.T) {
	jobs, err := jobsIn(root(t), pair().manifests)
	if err != nil {
		t.Fatal(err)
	}
	if want := []job{{named(t, "TFJob"), "job1"}, {named(t, "TFJob"), "job2"}}; !slices.Equal(jobs, want) {
		t.Errorf("%v, want %v", jobs, want)
	}
}

func TestAllIsOneJobOfEachKind(t *testing.T) {
	jobs, err := jobsIn(root(t), all().manifests)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		count := 0
		for _, j := range jobs {
			if j.kind == k {
				count++
			}
		}
		if count != 1 {
			t.Errorf("there are %d jobs of kind %s", count, k.Kind)
		}
		if !k.endless() && !slices.Contains(strings.Split(all().kinds, ","), strings.ToLower(k.Kind)) {
			t.Errorf("the farewell does not list %s", k.Kind)
		}
	}
	enabled, err := registry.Parse(all().extensions)
	if err != nil {
		t.Fatal(err)
	}
	for _, adapter := range enabled {
		if kindOf(adapter.Kind().GroupVersionKind) == nil {
			t.Errorf("%s is enabled, and there is no job of it", adapter.Kind().Name)
		}
	}
	if len(enabled) != len(kinds) {
		t.Errorf("%d kinds are enabled, and %d are shown", len(enabled), len(kinds))
	}
}

func TestEachJobAsksToBeQueued(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root(t), "test/demo/manifests/jobs/*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		objects, err := objectsIn(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			suspended, _, _ := unstructured.NestedBool(o.Object, "spec", "suspend")
			if kindOf(o.GroupVersionKind()) != nil && !suspended && o.GetAnnotations()["scheduling.x-k8s.io/suspend"] != "true" {
				t.Errorf("%s %s in %s has no mark", o.GetKind(), o.GetName(), file)
			}
		}
	}
}

func TestJobsComeInTheOrderOfTheirFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"b.yaml": "{apiVersion: batch/v1, kind: Job, metadata: {name: second}}\n---\n# nothing\n---\n{apiVersion: batch/v1, kind: Job, metadata: {name: third}}\n",
		"a.yaml": "{apiVersion: v1, kind: ServiceAccount, metadata: {name: spark}}\n---\n{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: first}}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	jobs, err := jobsIn(dir, []string{"."})
	want := []job{{named(t, "RayJob"), "first"}, {named(t, "Job"), "second"}, {named(t, "Job"), "third"}}
	if err != nil || !slices.Equal(jobs, want) {
		t.Errorf("%v, %v", jobs, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "c.yaml"), []byte("a: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = jobsIn(dir, []string{"."})
	expect(t, err, "c.yaml")
}
