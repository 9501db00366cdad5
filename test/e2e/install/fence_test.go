package install

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/harness"
)

// The jobs of the test in a managed namespace: some run until the test ends them, and the others wait.
const (
	fenceRunning = 4
	fenceWaiting = 4
)

// An upgrade adds the fence to a managed namespace full of jobs. Until the next minor version, the fence warns and
// refuses nothing.
func TestAnUpgradeThatAddsTheFenceOnlyWarns(t *testing.T) {
	s := begin(t)
	s.helmOf(firstChart(), "install", s.firstValues(), "--create-namespace", "--wait")
	s.waitForRollout()
	if earlier == nil {
		s.asBeforeTheFence()
	}
	s.enter("managed")
	s.Tree(fmt.Sprintf(`{cpu: "%d"}`, fenceRunning))
	_, err := suite.Kubectl(t.Context(), "label", "namespace", s.Namespace, "kube-queue/managed=true")
	harness.Must(t, err)
	for number := range fenceRunning + fenceWaiting {
		runs := 2 * time.Second
		if number < fenceRunning {
			runs = harness.UntilFinished
		}
		s.Apply(tfjob(name(number), "1", runs))
	}
	for number := range fenceRunning {
		s.WaitForPhase("TFJob", name(number), v1alpha1.PhaseRunning)
	}

	s.helm("upgrade", s.values(""), "--wait", "--force-conflicts")
	s.waitForRollout()
	user := s.user()
	harness.Eventually(t, time.Minute, "the fence warns", func() (bool, string) {
		err := user.patch(name(0), more, metav1.DryRunAll)
		harness.Must(t, err)
		warnings := user.take()
		return strings.Contains(warnings, "cannot grow or change"), warnings
	})
	harness.Must(t, user.patch(name(0), `{"metadata":{"labels":{"of":"team"}}}`))
	harness.Must(t, user.patch(name(fenceRunning), `{"metadata":{"annotations":{"scheduling.x-k8s.io/priority":"7"}}}`))
	if warnings := user.take(); warnings != "" {
		t.Errorf("ordinary changes are warned of: %s", warnings)
	}
	orphan := metav1.DeletePropagationOrphan
	harness.Must(t, user.jobs.Delete(t.Context(), name(0), metav1.DeleteOptions{PropagationPolicy: &orphan, DryRun: []string{metav1.DryRunAll}}))
	expectWords(t, user.take(), "must delete its pods too")

	// The next minor version refuses what this one warns about.
	s.helmOf(s.nextMinor(), "upgrade", s.values(""), "--wait", "--force-conflicts")
	s.waitForRollout()
	harness.Eventually(t, time.Minute, "the fence refuses", func() (bool, string) {
		err := user.patch(name(0), more, metav1.DryRunAll)
		return apierrors.IsForbidden(err), fmt.Sprint(err)
	})
	for number := range fenceRunning {
		s.Finish(harness.TFJobs, name(number))
	}
	for number := range fenceRunning + fenceWaiting {
		unit := s.WaitForPhase("TFJob", name(number), v1alpha1.PhaseSucceeded)
		if unit.Status.Attempts != 1 {
			t.Errorf("%s was released %d times", unit.Spec.ConsumerRef.Name, unit.Status.Attempts)
		}
	}
	for _, refusal := range s.Refusals("namespace is managed by kube-queue: ") {
		t.Error(refusal)
	}
	s.ExpectFree()
}

// more is a patch that makes a TFJob of tfjob larger.
const more = `{"spec":{"tfReplicaSpecs":{"Worker":{"replicas":2}}}}`

// asBeforeTheFence reduces the policies to those of a release without the fence.
func (s *stage) asBeforeTheFence() {
	s.t.Helper()
	out, err := suite.Kubectl(s.t.Context(), "get", "validatingadmissionpolicies", "-o", "name")
	harness.Must(s.t, err)
	for policy := range strings.FieldsSeq(out) {
		_, name, _ := strings.Cut(policy, "/")
		if strings.HasPrefix(name, "kube-queue-fence-") {
			_, err := suite.Kubectl(s.t.Context(), "delete", policy, "validatingadmissionpolicybinding.admissionregistration.k8s.io/"+name)
			harness.Must(s.t, err)
		}
	}
	_, err = suite.Kubectl(s.t.Context(), "annotate", "mutatingadmissionpolicy", "kube-queue-managed-namespace", "kube-queue/fence-warns-in-")
	harness.Must(s.t, err)
}

// nextMinor returns a copy of the chart with the next minor version.
func (s *stage) nextMinor() string {
	s.t.Helper()
	copied := filepath.Join(s.t.TempDir(), "kube-queue")
	harness.Must(s.t, os.CopyFS(copied, os.DirFS(filepath.Join(suite.Repository, "charts", "kube-queue"))))
	file := filepath.Join(copied, "Chart.yaml")
	text, err := os.ReadFile(file)
	harness.Must(s.t, err)
	version := regexp.MustCompile(`(?m)^version: .*$`)
	harness.Must(s.t, os.WriteFile(file, version.ReplaceAll(text, []byte("version: 99.0.0")), 0o644))
	return copied
}

// warned is a user that collects the warnings of the API server.
type warned struct {
	jobs     dynamic.ResourceInterface
	t        *testing.T
	warnings strings.Builder
}

func (s *stage) user() *warned {
	s.t.Helper()
	w := &warned{t: s.t}
	config := suite.Config()
	config.WarningHandler = rest.NewWarningWriter(&w.warnings, rest.WarningWriterOptions{})
	client, err := dynamic.NewForConfig(config)
	harness.Must(s.t, err)
	w.jobs = client.Resource(harness.TFJobs).Namespace(s.Namespace)
	return w
}

// take returns the warnings since the last call.
func (w *warned) take() string {
	defer w.warnings.Reset()
	return w.warnings.String()
}

func (w *warned) patch(job, patch string, dryRun ...string) error {
	w.t.Helper()
	_, err := w.jobs.Patch(w.t.Context(), job, types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: dryRun})
	return err
}
