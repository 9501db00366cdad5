package admission

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/pkg/bounds"
)

// largeJob is the size of a large job in bytes. The API server accepts at most 1.5 MiB, including the job's managed
// fields.
const largeJob = 1_000_000

// costsOfLargeJobs tests that no expression exceeds the API server's cost budget for a job of the maximum size: it
// lives, and is fenced in, like a small one.
func costsOfLargeJobs(t *testing.T, kind heldKind, _ dynamic.ResourceInterface) {
	// A unit has a pod set for each group, and one for the head or the launcher.
	for name, groups := range map[string]int{"as many groups as a unit may have": bounds.PodSets - 1, "many more groups": 2000} {
		t.Run(name, func(t *testing.T) {
			f := fencedNamespace(t, kind)
			job := kind.job(t)
			grown := kind.multiply(t, job, groups)
			if !grown && groups >= bounds.PodSets {
				t.Skip("the kind has no list of groups")
			}
			if !grown || groups < bounds.PodSets {
				fill(t, job)
			}
			create(t, f.tenant, job)
			_, err := try(t, f.tenant, `{metadata: {labels: {a: b}}}`, metav1.PatchOptions{})
			allowed(t, "a label of a waiting job", err)
			if groups < bounds.PodSets && !kind.isOlder() { // in an older version, released jobs are not changed
				kind.release(t, f.queue)
				_, err = try(t, f.tenant, `{metadata: {labels: {a: c}}}`, metav1.PatchOptions{})
				allowed(t, "a label of a released job", err)
				for _, c := range changes(kind) {
					if c.refused && strings.HasPrefix(c.name, "larger") {
						_, err := try(t, f.tenant, c.patch, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
						refused(t, err, "cannot grow or change")
					}
				}
				_, err = try(t, f.queue, kind.suspend("true"), metav1.PatchOptions{})
				allowed(t, "a suspension by job-extensions", err)
			}
			err = f.tenant.Delete(t.Context(), "held", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)})
			allowed(t, "a deletion", err)
		})
	}
}

// multiply gives the job this many groups of pods. It reports false if the kind has no list of groups.
func (k heldKind) multiply(t *testing.T, job *unstructured.Unstructured, count int) bool {
	t.Helper()
	for _, groups := range k.Fence.Groups {
		if groups.Key == "" {
			continue
		}
		list, found, err := unstructured.NestedSlice(job.Object, groups.Path...)
		if err != nil || !found {
			t.Fatalf("the manifest has no %s: %v", strings.Join(groups.Path, "."), err)
		}
		for i := len(list); i < count; i++ {
			group := runtime.DeepCopyJSON(list[0].(map[string]any))
			group[groups.Key] = fmt.Sprint("group-", i)
			list = append(list, group)
		}
		must(t, unstructured.SetNestedSlice(job.Object, list, groups.Path...))
		return true
	}
	return false
}

// fill adds environment variables to the first container of the job until the job is large.
func fill(t *testing.T, job *unstructured.Unstructured) {
	t.Helper()
	text, err := json.Marshal(job.Object)
	must(t, err)
	container := firstContainer(job.Object)
	if container == nil {
		return // TrainJobs name a runtime, and SparkApplications have no containers
	}
	var env []any
	for size := len(text); size < largeJob; size += 1024 {
		env = append(env, map[string]any{"name": fmt.Sprint("V", len(env)), "value": strings.Repeat("x", 1000)})
	}
	container["env"] = env
}

// firstContainer returns a container in the object, or nil.
func firstContainer(value any) map[string]any {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range []string{"containers", "container"} {
			if list, is := value[key].([]any); is && len(list) > 0 {
				container, _ := list[0].(map[string]any)
				return container
			}
			if container, is := value[key].(map[string]any); is {
				return container
			}
		}
		for _, field := range value {
			if found := firstContainer(field); found != nil {
				return found
			}
		}
	case []any:
		for _, element := range value {
			if found := firstContainer(element); found != nil {
				return found
			}
		}
	}
	return nil
}

// BenchmarkCreate compares how long the API server takes to create a waiting Job in a managed namespace and in
// another one. It reports medians in ms, because other programs write at the same time:
//
//	go test -run '^$' -bench Create -benchtime 2000x ./test/integration/admission
func BenchmarkCreate(b *testing.B) {
	kind := batchJob(b)
	job := kind.job(b, `{metadata: {name: "", generateName: job-, annotations: {scheduling.x-k8s.io/suspend: "true"}}}`, kind.suspend("true"))
	namespaces := []string{namespace(b), managedNamespace(b)}
	took := make([][]float64, len(namespaces))
	jobs := objects(b).Resource(kind.resource)
	for b.Loop() {
		for i, ns := range namespaces { // in turn
			start := time.Now()
			if _, err := jobs.Namespace(ns).Create(b.Context(), job, metav1.CreateOptions{}); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], float64(time.Since(start).Microseconds())/1000)
		}
	}
	for i, name := range []string{"ms/unmanaged", "ms/managed"} {
		slices.Sort(took[i])
		b.ReportMetric(took[i][len(took[i])/2], name)
	}
}
