package silence

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/require"
)

// While job-extensions may not watch a kind, its log and a metric say so.
func TestAKindThatMayNotBeWatchedIsReported(t *testing.T) {
	l := suite.Env(t, "forbidden")
	roles := l.Kube.RbacV1().ClusterRoles()
	role, err := roles.Get(t.Context(), "kube-queue-job-extensions", metav1.GetOptions{})
	harness.Must(t, err)
	whole := role.DeepCopy()
	for i := range role.Rules {
		role.Rules[i].Resources = slices.DeleteFunc(role.Rules[i].Resources, func(name string) bool { return name == "pytorchjobs" })
	}
	role.Rules = slices.Clone(role.Rules)
	role, err = roles.Update(t.Context(), role, metav1.UpdateOptions{})
	harness.Must(t, err)
	restore := func() {
		whole.ResourceVersion = role.ResourceVersion
		role, err = roles.Update(t.Context(), whole, metav1.UpdateOptions{})
		harness.Must(t, err)
	}
	token := suite.MetricsToken(t, "prometheus")
	extensions := suite.Program(t, harness.Extensions, "--enabled-extensions=tfjob", "--annotation-extensions=pytorchjob")
	extensions.Start()
	shows := func(line string) {
		t.Helper()
		harness.Eventually(t, time.Minute, "the metrics show "+line, func() (bool, string) {
			lines := extensions.Metrics(t, token)
			return slices.Contains(lines, line), strings.Join(slices.DeleteFunc(lines, func(l string) bool { return !strings.Contains(l, "watch_forbidden") }), "\n")
		})
	}
	shows(`kube_queue_watch_forbidden{resource="pytorchjobs.kubeflow.org"} 1`)
	shows(`kube_queue_watch_forbidden{resource="tfjobs.kubeflow.org"} 0`)
	log, err := os.ReadFile(extensions.Log.Name())
	harness.Must(t, err)
	require.Says(t, extensions.Log.Name(), string(log), `add their kind to annotationExtensions of the chart`, `resource="pytorchjobs.kubeflow.org"`)
	restore()
	shows(`kube_queue_watch_forbidden{resource="pytorchjobs.kubeflow.org"} 0`)
}
