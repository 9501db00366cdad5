package controller

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Without the policy of units an administrator may write every phase.
func TestAPhaseThatAnAdministratorWritesIsReportedAndTakenBack(t *testing.T) {
	s := newStage(t)
	e := s.extensions()
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
		if len(found) == 1 && found[0].Reason == "NotAdmitted" && strings.Contains(found[0].Message, "somebody other than kube-queue-controller set its phase") {
			return ""
		}
		return fmt.Sprintf("%d events: %v", len(found), found)
	})
	e.stop("forged") // its job is suspended
	s.becomes("forged", "phase", "Enqueued")
	s.used("4")
	if s.status("holder", "phase") != "Dequeued" {
		t.Errorf("the other unit is in phase %s", s.status("holder", "phase"))
	}
	s.end("holder")
	s.becomes("forged", "phase", "Dequeued")
	s.used("3")
	if unit := e.get("forged"); unit.Status.Reason != "" || unit.Status.Attempts != 2 {
		t.Errorf("released in its turn it is %+v", unit.Status)
	}
}
