package admission

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	webhooks "kube-queue.dev/kube-queue/extensions/hold/admission"
	"kube-queue.dev/kube-queue/test/clustertest"
)

// Before Kubernetes 1.36, a webhook holds jobs. It holds each kind as the policies do. make test-versions runs all
// tests of this package with the webhook.
func TestTheWebhookHoldsEachKind(t *testing.T) {
	if cluster.HoldsBy == clustertest.HoldByWebhook {
		return // all tests run with it
	}
	byPolicies, byWebhook := cluster, options()
	byWebhook.HoldBy, byWebhook.OnlyAPI = clustertest.HoldByWebhook, true
	t.Cleanup(func() { cluster = byPolicies })
	cluster = clustertest.ForTest(t, byWebhook)
	eachKind(t, func(kind heldKind) []kindTest {
		switch {
		case !testing.Short():
			return slices.Concat(holdTests(), managedTests())
		case kind.operator != "" && !slices.Contains(byWebhook.CRDs, kind.operator):
			return nil // the other MPIJob: replacing its CRD takes a minute
		}
		return briefTests()[:2]
	})
	t.Run("the webhook configurations are protected", TestHoldingByWebhookGivesJobExtensionsOnlyCABundle)
	t.Run("the programs have their rights", TestTheProgramsMayDoWhatTheyMustAndNoMore)
}

// Its right to patch the webhook configurations would let job-extensions intercept every object in the cluster. A
// policy limits it to caBundle.
func TestHoldingByWebhookGivesJobExtensionsOnlyCABundle(t *testing.T) {
	if cluster.HoldsBy == clustertest.HoldByPolicy {
		_, err := core(t).AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), webhooks.HoldConfiguration, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("policies hold jobs, and so does a webhook: %v", err)
		}
		return
	}
	client, err := kubernetes.NewForConfig(program(t, "job-extensions"))
	must(t, err)
	all := client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	before, err := all.Get(t.Context(), webhooks.HoldConfiguration, metav1.GetOptions{})
	must(t, err)
	const only = "the program changes only caBundle of its webhooks"
	bundle := base64.StdEncoding.EncodeToString(before.Webhooks[0].ClientConfig.CABundle)
	for name, test := range map[string]struct{ patch, says string }{
		"caBundle":                       {`{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": "` + bundle + `"}`, ""},
		"the failurePolicy":              {`{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}`, only},
		"the rules":                      {`{"op": "replace", "path": "/webhooks/0/rules/0/resources", "value": ["*"]}`, only},
		"the Service":                    {`{"op": "replace", "path": "/webhooks/0/clientConfig/service/namespace", "value": "default"}`, only},
		"a condition that is removed":    {`{"op": "remove", "path": "/webhooks/0/matchConditions/0"}`, only},
		"all conditions":                 {`{"op": "remove", "path": "/webhooks/0/matchConditions"}`, only},
		"a selector that is added":       {`{"op": "replace", "path": "/webhooks/0/objectSelector", "value": {"matchLabels": {"a": "b"}}}`, only},
		"a webhook that is removed":      {`{"op": "remove", "path": "/webhooks/0"}`, only},
		"a webhook that is added":        {fmt.Sprintf(`{"op": "copy", "from": "/webhooks/0", "path": "/webhooks/-"}, {"op": "replace", "path": "/webhooks/%d/name", "value": "all.example.com"}`, len(before.Webhooks)), only},
		"the order of the webhooks":      {`{"op": "move", "from": "/webhooks/0", "path": "/webhooks/1"}`, only},
		"the labels":                     {`{"op": "add", "path": "/metadata/labels/a", "value": "b"}`, only},
		"the annotations of the release": {`{"op": "add", "path": "/metadata/annotations/a", "value": "b"}`, only},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := all.Patch(t.Context(), before.Name, types.JSONPatchType, []byte("["+test.patch+"]"), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			wantError(t, err, test.says)
		})
	}
	other := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	if _, err := all.Create(t.Context(), other, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("job-extensions may create a webhook configuration: %v", err)
	}
	// An administrator may change everything.
	if _, err := core(t).AdmissionregistrationV1().MutatingWebhookConfigurations().Patch(t.Context(), before.Name, types.JSONPatchType,
		fmt.Appendf(nil, `[{"op": "add", "path": "/metadata/labels/a", "value": "b"}]`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Error(err)
	}
}
