package audit

import (
	"bytes"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEndsByKind(t *testing.T) {
	type test struct {
		resource, object string
		want             Ending
	}
	var tests []test
	for _, r := range allKinds {
		if r.Group != "kubeflow.org" || r.Version != "v1" {
			continue
		}
		for condition, want := range map[string]Ending{"Restarting": Going, "Succeeded": Succeeded, "Failed": Failed} {
			tests = append(tests, test{r.Group + "/" + r.Version + "/" + r.Resource, fmt.Sprintf(
				`{"kind":%q,"status":{"conditions":[{"type":"Running","status":"False"},{"type":%q,"status":"True"}]}}`, r.Kind, condition), want})
		}
	}
	for _, test := range append(tests, []test{
		{"batch/v1/jobs", `{"kind":"Job","status":{"conditions":[{"type":"SuccessCriteriaMet","status":"True"}]}}`, Going},
		{"batch/v1/jobs", `{"kind":"Job","status":{"conditions":[{"type":"Complete","status":"True"}]}}`, Succeeded},
		{"kubeflow.org/v2beta1/mpijobs", `{"kind":"MPIJob","status":{"conditions":[{"type":"Failed","status":"True"}]}}`, Going},
		{"kubeflow.org/v2beta1/mpijobs", `{"kind":"MPIJob","status":{"completionTime":"x","conditions":[{"type":"Succeeded","status":"True"}]}}`, Succeeded},
		{"sparkoperator.k8s.io/v1beta2/sparkapplications", `{"kind":"SparkApplication","status":{"applicationState":{"state":"FAILING"}}}`, Going},
		{"sparkoperator.k8s.io/v1beta2/sparkapplications", `{"kind":"SparkApplication","status":{"applicationState":{"state":"COMPLETED"}}}`, Succeeded},
		{"ray.io/v1alpha1/rayjobs", `{"kind":"RayJob","status":{"jobDeploymentStatus":"Complete","jobStatus":"FAILED"}}`, Failed},
		{"ray.io/v1/rayjobs", `{"kind":"RayJob","status":{"jobDeploymentStatus":"Retrying"}}`, Going},
		{"ray.io/v1/rayclusters", `{"kind":"RayCluster","status":{"state":"ready"}}`, Going},
		{"jobset.x-k8s.io/v1alpha2/jobsets", `{"kind":"JobSet","status":{"conditions":[{"type":"Completed","status":"True"}]}}`, Succeeded},
		{"trainer.kubeflow.org/v1alpha1/trainjobs", `{"kind":"TrainJob","status":{"conditions":[{"type":"Suspended","status":"False"},{"type":"Complete","status":"True"}]}}`, Succeeded},
		{"trainer.kubeflow.org/v1alpha1/trainjobs", `{"kind":"TrainJob","status":{"conditions":[{"type":"Failed","status":"True","reason":"DeadlineExceeded"}]}}`, Failed},
		{"argoproj.io/v1alpha1/workflows", `{"kind":"Workflow","status":{"phase":"Error"}}`, Failed},
	}...) {
		parts := bytes.Split([]byte(test.resource), []byte("/"))
		r := kindOf(string(parts[0]), string(parts[1]), string(parts[2]))
		if r == nil {
			t.Errorf("%s has no row", test.resource)
			continue
		}
		facts, err := r.read(&metav1.ObjectMeta{}, []byte(test.object))
		if err != nil {
			t.Fatal(err)
		}
		if got := facts.(*jobFacts).end; got != test.want {
			t.Errorf("%s %s: got %q, want %q", test.resource, test.object, got, test.want)
		}
	}
}
