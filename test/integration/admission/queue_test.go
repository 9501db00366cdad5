package admission

import (
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
		"an unknown field":    {`{polcy: Block}`, `unknown field "spec.polcy"`},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: Queue, metadata: {name: root-a, namespace: " + clustertest.Namespace + "}, spec: " + test.spec + "}"
			_, err := cluster.KubectlWith(t.Context(), manifest, "create", "--dry-run=server", "-f", "-")
			wantError(t, err, test.says)
		})
	}
}

func TestColumns(t *testing.T) {
	ns := namespace(t)
	if _, err := unitsAs(t, cluster.Config(), ns).Create(t.Context(), unit("mine", "example.com/v1", "Thing"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	queue := "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: Queue, metadata: {name: root-a}}"
	kubectl(t, queue, "create", "-n", ns, "-f", "-")
	for resource, want := range map[string]string{
		"qu -o wide": "NAME QUEUE PHASE REASON PRIORITY KIND AGE QUOTA MESSAGE",
		"qu":         "NAME QUEUE PHASE REASON PRIORITY KIND AGE",
		"queues":     "NAME POLICY PENDING DEQUEUED RUNNING FRONT-REASON AGE",
	} {
		out := kubectl(t, "", append([]string{"get", "-n", ns}, strings.Fields(resource)...)...)
		header, _, _ := strings.Cut(out, "\n")
		if got := strings.Join(strings.Fields(header), " "); got != want {
			t.Errorf("kubectl get %s shows %q, want %q", resource, got, want)
		}
	}
}
