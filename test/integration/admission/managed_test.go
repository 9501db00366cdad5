package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func managedTests() []kindTest {
	return []kindTest{
		{"no new job runs in a managed namespace", noNewJobRuns},
		{"a job that is older than the label is left alone", olderThanTheLabel},
	}
}

const (
	// managedLabel is a label of namespaces. managedNote is an annotation of their jobs.
	managedLabel = "kube-queue/managed"
	managedNote  = "kube-queue/managed"
)

// batchJob is a kind that every API server serves.
func batchJob(t testing.TB) heldKind {
	t.Helper()
	all := heldKinds(t)
	return all[slices.IndexFunc(all, func(k heldKind) bool { return k.Native })]
}

// managedNamespace creates a managed namespace.
func managedNamespace(t testing.TB) string {
	t.Helper()
	ns := namespace(t)
	labelNamespace(t, ns, "true")
	return ns
}

// labelNamespace sets the label and waits until it takes effect in admission.
func labelNamespace(t testing.TB, ns, value string) {
	t.Helper()
	label := []byte(`{"metadata": {"labels": {"` + managedLabel + `": "` + value + `"}}}`)
	_, err := core(t).CoreV1().Namespaces().Patch(t.Context(), ns, types.MergePatchType, label, metav1.PatchOptions{})
	must(t, err)
	kind := batchJob(t)
	probe := kind.job(t, `{metadata: {name: probe}}`)
	eventually(t, ns+" is managed: "+value, func(ctx context.Context) error {
		created, err := objects(t).Resource(kind.resource).Namespace(ns).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && kind.suspended(created) != (value == "true") {
			err = errors.New("not yet")
		}
		return err
	})
}

// warned are the warnings of the API server.
type warned []string

func (w *warned) HandleWarningHeader(_ int, _, text string) { *w = append(*w, text) }

func TestAWrongValueOfTheManagedLabelIsAWarning(t *testing.T) {
	ns := namespace(t)
	config, seen := rest.CopyConfig(cluster.Config()), &warned{}
	config.WarningHandler = seen
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	set := func(ctx context.Context, label string) (warned, error) {
		*seen = nil
		_, err := client.CoreV1().Namespaces().Patch(ctx, ns, types.MergePatchType, []byte(`{"metadata": {"labels": {`+label+`}}}`), metav1.PatchOptions{})
		return *seen, err
	}
	eventually(t, "a wrong value is a warning", func(ctx context.Context) error {
		got, err := set(ctx, `"`+managedLabel+`": "True"`)
		if err == nil && (len(got) != 1 || !strings.Contains(got[0], `label kube-queue/managed is "True", so the namespace is not managed`)) {
			err = fmt.Errorf("warnings %q", got)
		}
		return err
	})
	for _, label := range []string{`"` + managedLabel + `": "true"`, `"` + managedLabel + `": null`, `"a": "b"`} {
		if got, err := set(t.Context(), label); err != nil || len(got) > 0 {
			t.Errorf("label %s: %v, warnings %q", label, err, got)
		}
	}
}

// wantQueued checks the mark and the annotation of a job.
func wantQueued(t *testing.T, job *unstructured.Unstructured, want bool) {
	t.Helper()
	annotations := job.GetAnnotations()
	if got := annotations[mark] == "true" && annotations[managedNote] == "true"; got != want {
		t.Errorf("queued %v, want %v: %v", got, want, annotations)
	}
}

func olderThanTheLabel(t *testing.T, kind heldKind, _ dynamic.ResourceInterface) {
	ns := namespace(t)
	jobs := objects(t).Resource(kind.resource).Namespace(ns)
	labelNamespace(t, ns, "false")
	kind.wantSuspended(t, create(t, jobs, kind.job(t)), false)
	labelNamespace(t, ns, "true")
	if kind.isOlder() { // in this version it is not changed, because that would lose fields
		return
	}
	job := patch(t, jobs, `{metadata: {labels: {a: b}}}`)
	kind.wantSuspended(t, job, false)
	wantQueued(t, job, false)
}

// Each change of a policy reorders the policies in the API server. A policy that did not match is not evaluated
// again.
func TestJobsOfAManagedNamespaceAreHeldWithAnyOrderOfPolicies(t *testing.T) {
	ns := managedNamespace(t)
	t.Cleanup(func() {
		_, err := cluster.Kubectl(context.Background(), "delete", "mutatingadmissionpolicy,mutatingadmissionpolicybinding", "test-round")
		must(t, err)
	})
	batch := batchJob(t)
	const labelled = `{metadata: {labels: {a: b}}}`
	for round := range 5 {
		kubectl(t, fmt.Sprintf(roundPolicy, round, ns), "apply", "-f", "-")
		eventually(t, "the policies have another order", func(ctx context.Context) error {
			job, err := objects(t).Resource(batch.resource).Namespace(ns).
				Create(ctx, batch.job(t, labelled), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err == nil && job.GetLabels()["round"] != fmt.Sprint(round) {
				err = fmt.Errorf("labels %v", job.GetLabels())
			}
			return err
		})
		for _, kind := range heldKinds(t) {
			if kind.operator == "" {
				job := create(t, objects(t).Resource(kind.resource).Namespace(ns), kind.job(t, labelled), metav1.DryRunAll)
				kind.wantSuspended(t, job, true)
			}
		}
	}
}

// roundPolicy sets a label that shows that the API server has reloaded the policies.
const roundPolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: test-round}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
    - {apiGroups: [batch], apiVersions: [v1], operations: [CREATE], resources: [jobs]}
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: "[JSONPatch{op: 'add', path: '/metadata/labels/round', value: '%d'}]"
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: test-round}
spec:
  policyName: test-round
  matchResources:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}
`
