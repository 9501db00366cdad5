package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/extensions/registry"
	samples "kube-queue.dev/kube-queue/test/acceptance/kinds"
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

func TestAllIsOneJobOfEachKind(t *testing.T) {
	jobs, err := jobsIn(root(t), slices.Concat(all().manifests...))
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
		if !k.endless && !slices.Contains(strings.Split(all().kinds, ","), strings.ToLower(k.Kind)) {
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

// A job that requests more than the quota would wait forever.
func TestEachJobFitsInTheQuota(t *testing.T) {
	objects, err := objectsIn(filepath.Join(root(t), "test/demo/manifests/quota.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	groups, _, _ := unstructured.NestedSlice(objects[0].Object, "spec", "root", "children")
	most, _, err := unstructured.NestedStringMap(groups[0].(map[string]any), "max")
	if err != nil || len(most) == 0 {
		t.Fatal(most, err)
	}
	known, err := samples.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, sample := range known {
		for name, text := range most {
			limit := resource.MustParse(text)
			if amount := sample.Total[corev1.ResourceName(name)]; amount.Cmp(limit) > 0 {
				t.Errorf("%s requests %s of %s %s", sample.Name, amount.String(), text, name)
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
