package admission

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

func applyTests() []kindTest {
	return []kindTest{{"the same manifest applied again changes nothing", sameManifestAgain}}
}

func sameManifestAgain(t *testing.T, kind heldKind, _ dynamic.ResourceInterface) {
	client, server := []string{"apply"}, []string{"apply", "--server-side", "--force-conflicts"}
	// All fields that a policy sets, with other values.
	outspoken := []string{marked, kind.suspend("false")}
	if kind.isRayJob() {
		outspoken = append(outspoken, `{spec: {shutdownAfterJobFinishes: false}}`)
	}
	for _, test := range []struct {
		name   string
		merged []string
		how    []string
	}{
		{"by the client", []string{marked}, client},
		{"by the client, outspoken", outspoken, client},
		{"by the server", []string{marked}, server},
		{"by the server, outspoken", outspoken, server},
		{"by the server, without force", []string{marked}, server[:2:2]},
		{"replaced", outspoken, []string{"replace"}},
	} {
		if test.name == "replaced" && kind.title == "Job" {
			// The API server sets the selector of a Job, and a replacement lacks it.
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			ns := namespace(t)
			jobs := objects(t).Resource(kind.resource).Namespace(ns)
			do := func() *unstructured.Unstructured { return kind.apply(t, ns, kind.job(t, test.merged...), test.how...) }
			if test.name == "replaced" {
				create(t, jobs, kind.job(t, test.merged...))
			}
			kind.wantHeld(t, do())
			kind.wantHeld(t, do())
			unforced := len(test.how) == 2
			if unforced {
				kind.releaseApplied(t, ns)
				if kind.title == "Workflow" {
					// Argo's CRD makes its spec a single field, and the release owns it from then on.
					_, err := cluster.KubectlWith(t.Context(), textOf(t, kind.job(t, test.merged...)), append(test.how, "-n", ns, "-f", "-")...)
					if err == nil || !strings.Contains(err.Error(), "conflict") || !strings.Contains(err.Error(), ": .spec\n") {
						t.Errorf("an apply without force after the release ended with %v, want a conflict about .spec", err)
					}
					test.how = server
				}
			} else {
				kind.release(t, jobs)
			}
			if job := do(); job.GetAnnotations()[mark] != "true" {
				t.Error("the manifest did not put the mark back, so this test shows nothing")
			} else {
				kind.wantSuspended(t, job, false)
			}
			kind.wantSuspended(t, do(), false)
			if unforced {
				// Only a policy can note that it is resumed, because its mark says that it is held.
				kind.wantHeld(t, patch(t, jobs, kind.suspend("true")))
				resumed := patch(t, jobs, kind.suspend("false"))
				kind.wantHeld(t, resumed)
				wantResumed(t, resumed, true)
			}
		})
	}
}

// releaseApplied is the patch with which job-extensions releases a job whose mark was applied on the server.
func (k heldKind) releaseApplied(t *testing.T, ns string) {
	t.Helper()
	text := strings.Replace(k.releaseText(), `scheduling.x-k8s.io/suspend: "false", `, "", 1)
	released := patch(t, asProgram(t, "job-extensions").Resource(k.resource).Namespace(ns), text)
	k.wantSuspended(t, released, false)
	wantResumed(t, released, false)
}

func wantResumed(t *testing.T, job *unstructured.Unstructured, want bool) {
	t.Helper()
	if value := job.GetAnnotations()[wellknown.ResumedAnnotation]; (value == "true") != want {
		t.Errorf("the annotation %s is %q", wellknown.ResumedAnnotation, value)
	}
}

// apply applies the job and returns the result.
func (k heldKind) apply(t *testing.T, ns string, job *unstructured.Unstructured, how ...string) *unstructured.Unstructured {
	t.Helper()
	kubectl(t, textOf(t, job), append(how, "-n", ns, "-f", "-")...)
	applied, err := objects(t).Resource(k.resource).Namespace(ns).Get(t.Context(), "held", metav1.GetOptions{})
	must(t, err)
	return applied
}

func textOf(t *testing.T, job *unstructured.Unstructured) string {
	t.Helper()
	text, err := json.Marshal(job.Object)
	must(t, err)
	return string(text)
}

// wantHeld checks that the job is suspended by the fields that its operator reads.
func (k heldKind) wantHeld(t *testing.T, job *unstructured.Unstructured) {
	t.Helper()
	k.wantSuspended(t, job, true)
	if k.isRayJob() {
		wantShutdown(t, job, true, "false")
	}
}
