package controller

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// stops reports, as job-extensions, that the evicted job of a unit has stopped.
func (s *stage) stops(name string) {
	s.Helper()
	units := s.asExtensions()
	unit, err := units.Get(s.Context(), name, metav1.GetOptions{})
	must(s.T, err)
	evicted := apimeta.FindStatusCondition(unit.Status.Conditions, wellknown.ConditionEvicted)
	if evicted == nil {
		s.Fatalf("%s is not evicted: %+v", name, unit.Status)
	}
	evicted.Reason = string(wellknown.ReasonStopped)
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": unit.ResourceVersion},
		"status":   map[string]any{"conditions": unit.Status.Conditions},
	})
	must(s.T, err)
	_, err = units.Patch(s.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	must(s.T, err)
}

// Without the unit policy, an administrator may write any phase.
func TestAPhaseThatAnAdministratorWritesIsReportedAndTakenBack(t *testing.T) {
	s := newStage(t)
	startController(t)
	withoutUnitPolicy(t)
	s.unit("holder", `resource: {cpu: 4}`)
	s.becomes("holder", "phase", "Dequeued")
	s.unit("forged", `resource: {cpu: 3}`)
	s.becomes("forged", "reason", "QuotaExceeded")

	s.eventually("the phase can be written", func() string { // the policy is removed asynchronously
		_, err := s.units.Patch(s.Context(), "forged", types.MergePatchType, []byte(`{"status": {"phase": "Dequeued", "attempts": 1}}`), metav1.PatchOptions{}, "status")
		if err != nil {
			return err.Error()
		}
		return ""
	})
	s.becomes("forged", "reason", "NotAdmitted")
	s.used("7")
	s.eventually("an event on the unit", func() string {
		found := s.warnings("forged")
		if len(found) == 1 && found[0].Reason == "NotAdmitted" && strings.Contains(found[0].Message, "something other than kube-queue-controller set its phase") {
			return ""
		}
		return fmt.Sprintf("%d events: %v", len(found), found)
	})
	s.stops("forged") // its job has been suspended
	s.becomes("forged", "phase", "Enqueued")
	s.used("4")
	if s.status("holder", "phase") != "Dequeued" {
		t.Errorf("the other unit is in phase %s", s.status("holder", "phase"))
	}
	s.end("holder")
	s.becomes("forged", "phase", "Dequeued")
	s.used("3")
	unit, err := s.asExtensions().Get(t.Context(), "forged", metav1.GetOptions{})
	must(t, err)
	if unit.Status.Reason != "" || unit.Status.Attempts != 2 {
		t.Errorf("released in its turn it is %+v", unit.Status)
	}
}
