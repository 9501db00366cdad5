package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kube-queue.dev/kube-queue/pkg/controller"
)

// A unit that was created by hand and whose owner is gone would hold its quota forever.
func TestAUnitThatWasCreatedByHandIsRenewedOrEnds(t *testing.T) {
	s := newStage(t)
	startController(t, func(cfg *controller.Config) { cfg.UnrenewedUnitTimeout = 3 * time.Second })
	s.unit("mine", `resource: {cpu: 4}`)
	s.becomes("mine", "phase", "Dequeued")
	s.unit("next", `resource: {cpu: 4}`)
	s.becomes("next", "reason", "QuotaExceeded")

	admitted := time.Now()
	s.eventually("6 s are over", func() string {
		if phase := s.status("mine", "phase"); phase != "Dequeued" {
			t.Fatalf("a unit that is renewed is in phase %s", phase)
		}
		s.patch("mine", `{"status": {"renewTime": "`+time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")+`"}}`, "status")
		if left := 6*time.Second - time.Since(admitted); left > 0 {
			return left.String()
		}
		return ""
	})
	s.becomes("next", "phase", "Dequeued")
	s.becomes("mine", "phase", "Failed")
	s.becomes("mine", "reason", "NotRenewed")
	s.used("4")
	s.eventually("an event on the unit", func() string {
		found := s.warnings("mine")
		if len(found) == 1 && found[0].Type == corev1.EventTypeWarning && found[0].Reason == "NotRenewed" && strings.Contains(found[0].Message, "was not renewed in time") {
			return ""
		}
		return fmt.Sprintf("%d events: %v", len(found), found)
	})
}
