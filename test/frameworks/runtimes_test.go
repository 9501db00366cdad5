package frameworks

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/test/acceptance/kinds"
	"kube-queue.dev/kube-queue/test/harness"
)

// A story needs jobs that a test can end.
func TestEachSpecimenHasTheRunTimeOfItsManifest(t *testing.T) {
	for _, specimen := range specimens(t, func(s kinds.Sample) bool { return !s.Endless }) {
		object := specimen.manifest(job{name: "reported", runs: time.Minute, fails: true})
		reported := 0
		for _, notes := range notesOnRunTimes(object) {
			if notes[harness.RunTime] == "1m0s" && notes[exitCode] == "1" {
				reported++
			} else if notes[harness.RunTime] != never {
				t.Errorf("%s: %v", specimen.extension, notes)
			}
		}
		if reported == 0 || object.GetName() != "reported" {
			t.Errorf("%s: %d run times in %v", specimen.extension, reported, object.Object)
		}
	}
}

func TestAllPodsOfAManifestWithoutRunTimesEnd(t *testing.T) {
	of := func(path ...string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		harness.Must(t, unstructured.SetNestedSlice(object.Object, []any{map[string]any{"name": "main"}}, append(path, "spec", "containers")...))
		return object
	}
	object := of("spec", "replicas", "Worker", "template")
	for _, notes := range notesOfTemplates(object) {
		notes[harness.RunTime] = "1s"
	}
	if value, _, _ := unstructured.NestedString(object.Object, slices.Concat([]string{"spec", "replicas", "Worker", "template", "metadata", "annotations"}, []string{harness.RunTime})...); value != "1s" {
		t.Errorf("the template is %v", object.Object)
	}
}
