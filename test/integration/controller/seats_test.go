package controller

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/pkg/controller"
	"kube-queue.dev/kube-queue/test/integration/controller/seats"
)

// seatsOf has the stage's namespace have so many seats; empty for none.
func (s *stage) seatsOf(number string) {
	s.Helper()
	label := "null"
	if number != "" {
		label = fmt.Sprintf("%q", number)
	}
	patch := fmt.Sprintf(`{"metadata": {"labels": {%q: %s}}}`, seats.Label, label)
	_, err := s.kube.CoreV1().Namespaces().Patch(s.Context(), s.namespace, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	must(s.T, err)
}

// The controller runs a backend that it knows nothing of: what a unit takes, when it
// fits and why it does not are all the backend's.
func TestABackendIsOnePackage(t *testing.T) {
	s := newStage(t)
	bySeats := func(cfg *controller.Config) { cfg.Source = &seats.Source{} }
	stop := startController(t, bySeats)
	s.unit("first", `resource: {cpu: 100}`)
	s.becomes("first", "reason", "NoQuota")
	s.says("first", "namespace "+s.namespace+" has no seats; give it the label example.com/seats")

	s.seatsOf("0")
	s.becomes("first", "reason", "ExceedsMaxQuota")
	s.seatsOf("1")
	s.becomes("first", "phase", "Dequeued")
	s.becomes("first", "quota", s.namespace)
	s.unit("second", `priority: 0`)
	s.becomes("second", "reason", "MaxJobs")
	s.seatsOf("2")
	s.becomes("second", "phase", "Dequeued")
	s.unit("third", `priority: 0`)
	s.becomes("third", "reason", "MaxJobs")

	// The next process finds the seats taken, and a place that is given back is used.
	stop()
	startController(t, bySeats)
	s.end("first")
	s.becomes("third", "phase", "Dequeued")

	// A hall that is taken away leaves alone who sits there.
	s.seatsOf("")
	s.unit("fourth", `priority: 0`)
	s.becomes("fourth", "reason", "NoQuota")
	for _, name := range []string{"second", "third"} {
		if phase := s.status(name, "phase"); phase != "Dequeued" {
			t.Errorf("%s is %s", name, phase)
		}
	}
}
