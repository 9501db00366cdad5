package admission

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/test/clustertest"
)

func TestWhatAnAdministratorMaySetOfAQueue(t *testing.T) {
	for name, test := range map[string]struct{ spec, says string }{
		"nothing":             {`{}`, ""},
		"RoundRobin":          {`{policy: RoundRobin}`, ""},
		"Block and priority":  {`{policy: Block, priority: -7}`, ""},
		"Priority":            {`{policy: Priority, priority: 7}`, ""},
		"an unknown policy":   {`{policy: Random}`, `supported values: "RoundRobin", "Block", "Priority"`},
		"a priority in words": {`{priority: high}`, "spec.priority"},
		"checks":              {`{admissionChecks: [a, b]}`, ""},
		"a check twice":       {`{admissionChecks: [a, a]}`, "Duplicate value"},
		"too many checks":     {`{admissionChecks: [a, b, c, d, e, f, g, h, i]}`, "must have at most 8 items"},
		"an unknown field":    {`{polcy: Block}`, `unknown field "spec.polcy"`},
		"that it stops":       {`{stop: Hold, maxPriority: -5, policy: Block}`, ""},
		"an unknown stop":     {`{stop: Maybe}`, `spec.stop: Unsupported value: "Maybe"`},
		"a stop in small":     {`{stop: drain}`, `spec.stop: Unsupported value: "drain"`},
		"a cap in words":      {`{maxPriority: high}`, "spec.maxPriority"},
		"half a cap":          {`{maxPriority: 1.5}`, "spec.maxPriority"},
		"a cap out of range":  {`{maxPriority: 2147483648}`, "spec.maxPriority"},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: Queue, metadata: {name: root-a, namespace: " + clustertest.Namespace + "}, spec: " + test.spec + "}"
			_, err := cluster.KubectlWith(t.Context(), manifest, "create", "--dry-run=server", "-f", "-")
			wantError(t, err, test.says)
		})
	}
}

// The columns of narrow tables are those of test/integration/controller.
func TestWideColumns(t *testing.T) {
	ns := namespace(t)
	_, err := unitsAs(t, cluster.Config(), ns).Create(t.Context(), unit("mine", "example.com/v1", "Thing"), metav1.CreateOptions{})
	must(t, err)
	kubectl(t, "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: AdmissionCheck, metadata: {name: shown}, spec: {controllerName: example.com/a}}", "create", "-f", "-")
	t.Cleanup(func() {
		_, err := cluster.Kubectl(context.Background(), "delete", "admissioncheck", "shown")
		must(t, err)
	})
	for resource, want := range map[string]string{
		"queueunits":      "NAME QUEUE PHASE REASON PRIORITY KIND REQUESTS AGE QUOTA MESSAGE",
		"admissionchecks": "NAME CONTROLLER TIMEOUT AGE PARAMETERS",
	} {
		header, _, _ := strings.Cut(kubectl(t, "", "get", "-n", ns, resource, "-o", "wide"), "\n")
		if got := strings.Join(strings.Fields(header), " "); got != want {
			t.Errorf("kubectl get %s -o wide shows %q, want %q", resource, got, want)
		}
	}
}
