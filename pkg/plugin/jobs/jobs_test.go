package jobs

import (
	"slices"
	"strings"
	"testing"
)

func TestAJobIsNamedAsInKubectl(t *testing.T) {
	for _, c := range []struct {
		args []string
		name string
		unit bool
		kind string
	}{
		{[]string{"train"}, "train", false, ""},
		{[]string{"job/train"}, "train", false, "job.batch"},
		{[]string{"jobs/train"}, "train", false, "job.batch"},
		{[]string{"Job", "train"}, "train", false, "job.batch"},
		{[]string{"job.batch/x"}, "x", false, "job.batch"},
		{[]string{"jobs.v1.batch/x"}, "x", false, "job.batch"},
		{[]string{"tfjobs.kubeflow.org/x"}, "x", false, "tfjob.kubeflow.org"},
		{[]string{"mpijob/x"}, "x", false, "mpijob.kubeflow.org"},
		{[]string{"rayjob.ray.io/x"}, "x", false, "rayjob.ray.io"},
		{[]string{"qu/train-job-d81b48fe5d"}, "train-job-d81b48fe5d", true, ""},
		{[]string{"queueunits.scheduling.x-k8s.io/u"}, "u", true, ""},
	} {
		got, err := Parse(c.args)
		if err != nil {
			t.Errorf("%q: %v", c.args, err)
			continue
		}
		kind := ""
		if len(got.Kinds) == 1 {
			kind = got.Kinds[0].String()
		}
		if got.Name != c.name || got.Unit != c.unit || kind != c.kind || len(got.Kinds) > 1 {
			t.Errorf("%q: %+v", c.args, got)
		}
	}
}

func TestWhatNamesNoJobIsRefused(t *testing.T) {
	for _, c := range []struct {
		args []string
		word string
	}{
		{nil, "not 0 arguments"},
		{[]string{"a", "b", "c"}, "not 3 arguments"},
		{[]string{""}, "names no job"},
		{[]string{"job/"}, "names no job"},
		{[]string{"/x"}, "names no job"},
		{[]string{"job/a/b"}, "names no job"},
		{[]string{"jbo/x"}, `did you mean "job"?`},
		{[]string{"deployment/x"}, "the kinds are JAXJob, Job"},
		{[]string{"job.example.com/x"}, "no kind of job"},
	} {
		if got, err := Parse(c.args); err == nil || !strings.Contains(err.Error(), c.word) {
			t.Errorf("%q: %+v, %v", c.args, got, err)
		}
	}
}

func TestEachKindIsListedOnceWithAllItsVersions(t *testing.T) {
	names := KindNames()
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("kinds %q", names)
	}
	kind, known := KindOf("kubeflow.org/v2beta1", "MPIJob")
	if !known || !slices.Contains(kind.Versions, "v1") || !slices.Contains(kind.Versions, "v2beta1") {
		t.Errorf("MPIJob is %+v", kind)
	}
	if _, known := KindOf("example.com/v1", "Experiment"); known {
		t.Error("a kind of somebody else is known")
	}
	for _, kind := range Kinds() {
		for _, version := range kind.Versions {
			if isPod := kind.Resource == "pods" || kind.Resource == "podgroups"; (AdapterOf(kind.WithVersion(version)) == nil) != isPod {
				t.Errorf("no adapter of %s %s", kind, version)
			}
		}
	}
	if AdapterOf(Kinds()[0].WithVersion("v0")) != nil {
		t.Error("an adapter of a version that does not exist")
	}
}
