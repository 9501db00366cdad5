package kinds

import (
	"embed"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"kube-queue.dev/kube-queue/examples"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/test/audit"
	"kube-queue.dev/kube-queue/test/require"
)

func all(t *testing.T) []Sample {
	t.Helper()
	samples, err := All()
	require.NoError(t, err)
	return samples
}

func TestEachKindHasAManifestAndEachManifestAKind(t *testing.T) {
	var want []string
	for _, sample := range all(t) {
		want = append(want, File(sample.Kind))
	}
	slices.Sort(want)
	used, err := usedExamples()
	require.NoError(t, err)
	if have := slices.Sorted(maps.Keys(used)); !slices.Equal(have, want) {
		t.Errorf("the test data of the adapters describes the examples %v, want %v", have, want)
	}
	if have := slices.DeleteFunc(filesOf(t, examples.Files), func(name string) bool { return name == examples.QuotaTree }); !slices.Equal(have, want) {
		t.Errorf("the examples are %v, want %v", have, want)
	}
}

func filesOf(t *testing.T, folder embed.FS) []string {
	t.Helper()
	entries, err := folder.ReadDir(".")
	require.NoError(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestEachManifestIsMarked(t *testing.T) {
	for _, sample := range all(t) {
		if !sample.Marked() {
			t.Errorf("%s has no mark", File(sample.Kind))
		}
		if unmarked := (Sample{Kind: sample.Kind, manifest: sample.Unmarked(sample.Version)}); unmarked.Marked() {
			t.Errorf("%s keeps its mark", File(sample.Kind))
		}
	}
}

func TestAdaptersReadTheManifests(t *testing.T) {
	samples := all(t)
	for i, adapter := range registry.All() {
		object := adapter.New()
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(samples[i].Job().Object, object); err != nil {
			t.Errorf("%s: %v", File(samples[i].Kind), err)
			continue
		}
		if _, byAnother := adapter.(framework.RelatedReader); byAnother {
			continue // another object describes its pods
		}
		if pods, err := adapter.Pods(object); err != nil || len(pods.Sets) == 0 {
			t.Errorf("%s: %d pod sets, %v", File(samples[i].Kind), len(pods.Sets), err)
		}
	}
}

// The adapters and the checker were written independently from an operator's source, so that they do not share
// mistakes.
func TestTheCheckerKnowsEachKindToo(t *testing.T) {
	for _, sample := range all(t) {
		for _, version := range sample.Versions() {
			view, err := audit.ViewOf(sample.Group, version, sample.Resource)
			if err != nil {
				t.Error(err)
				continue
			}
			if view.Kind != sample.Kind.Kind || view.Suspend != strings.Join(sample.SuspendPath, ".") ||
				view.BySuspend != sample.MarkedBySuspend || view.Operator != sample.ManagedBy {
				t.Errorf("the checker describes %s/%s as: kind %s, suspended at %s, marked by it %t, operator %q; its adapter: %+v",
					sample.Name, version, view.Kind, view.Suspend, view.BySuspend, view.Operator, sample.Kind)
			}
		}
	}
}

// If an adapter omits these two fields, the tests that depend on them do not run.
func TestPartsAndOlderVersionsAreThoseOfTheOperators(t *testing.T) {
	parts := map[string]string{"jobset": "Job.batch", "trainjob": "JobSet.jobset.x-k8s.io", "rayjob": "RayCluster.ray.io Job.batch", "raycluster": "Job.batch",
		"mpiv1": "Job.batch", "mpiv2beta1": "Job.batch"}
	older := map[string]string{"rayjob": "v1alpha1", "raycluster": "v1alpha1"}
	for _, sample := range all(t) {
		var have []string
		for _, part := range sample.Parts {
			have = append(have, part.String())
		}
		if got := strings.Join(have, " "); got != parts[sample.Name] {
			t.Errorf("%s has parts %q, want %q", sample.Name, got, parts[sample.Name])
		}
		if got := strings.Join(sample.OlderVersions, " "); got != older[sample.Name] {
			t.Errorf("%s has older versions %q, want %q", sample.Name, got, older[sample.Name])
		}
	}
}
