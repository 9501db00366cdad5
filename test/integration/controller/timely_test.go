package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// inTime is how long the first units of a queue may show a reason that is no longer true.
const inTime = 2 * time.Second

// setTree changes the only group of the tree.
func (s *stage) setTree(cpu, namespaces string) {
	s.Helper()
	_, err := s.trees().Patch(s.Context(), "tree", types.MergePatchType,
		[]byte(`{"spec": {"root": {"name": "root", "max": {"cpu": `+cpu+`}, "namespaces": `+namespaces+`}}}`), metav1.PatchOptions{})
	must(s.T, err)
}

// showsInTime changes something, and waits until the unit shows the reason and the text.
func (s *stage) showsInTime(name string, change func(), reason, text string) {
	s.Helper()
	change()
	until := time.Now().Add(inTime)
	s.eventually(fmt.Sprintf("%s shows %s, %s", name, reason, text), func() string {
		is := s.status(name, "reason") + ": " + s.status(name, "message")
		if strings.HasPrefix(is, reason+": ") && strings.Contains(is, text) {
			return ""
		}
		return is
	})
	if late := time.Since(until); late > 0 {
		s.Errorf("%s shows %s, %s %v too late", name, reason, text, late)
	}
}

func TestAReasonThatIsNoLongerTrueIsReplacedIn2Seconds(t *testing.T) {
	s := newStage(t)
	startController(t)
	s.unit("uses", `resource: {cpu: 4}`)
	s.becomes("uses", "phase", "Dequeued")
	s.unit("waits", `resource: {cpu: 4}`)
	s.becomes("waits", "reason", "QuotaExceeded")
	stop := func(value string) func() { return func() { s.setQueue(`{"stop": "` + value + `"}`) } }
	checks := func(names string) func() { return func() { s.setQueue(`{"admissionChecks": ` + names + `}`) } }
	limit := func(cpu, namespaces string) func() { return func() { s.setTree(cpu, namespaces) } }
	own := `["` + s.namespace + `"]`
	s.showsInTime("waits", stop("Hold"), "QueueStopped", "")
	s.showsInTime("waits", stop("None"), "QuotaExceeded", "")
	s.showsInTime("waits", limit("3", own), "ExceedsMaxQuota", "max is 3")
	s.showsInTime("waits", limit("2", own), "ExceedsMaxQuota", "max is 2")
	s.showsInTime("waits", limit("4", own), "QuotaExceeded", "")
	s.showsInTime("waits", checks(`["forgotten"]`), "AdmissionCheckMissing", "forgotten")
	s.showsInTime("waits", checks(`[]`), "QuotaExceeded", "")
	s.showsInTime("waits", limit("4", `["elsewhere"]`), "NoQuota", "no quota lists namespace")
	s.showsInTime("waits", limit("4", own), "QuotaExceeded", "")
}
