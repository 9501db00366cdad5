package facts

import (
	"bytes"
	"fmt"
	"testing"
)

func TestTreesThatAreInvalid(t *testing.T) {
	for _, test := range []struct {
		name, root string
		valid      bool
	}{
		{"plain", `{"name":"root","max":{"cpu":"4","memory":"0M"},"min":{"cpu":0},"children":[{"name":"a","namespaces":["x"],"children":null}]}`, true},
		{"a node without a name", `{"name":"root","children":[{"name":""}]}`, false},
		{"two of one name", `{"name":"root","children":[{"name":"a"},{"name":"b","children":[{"name":"a"}]}]}`, false},
		{"min above max", `{"name":"root","max":{"cpu":"1"},"min":{"cpu":"1001m"}}`, false},
		{"min where max is silent", `{"name":"root","max":{"memory":"1"},"min":{"cpu":"1001m"}}`, true},
		{"negative", `{"name":"root","max":{"cpu":"-1"}}`, false},
		{"unreadable", `{"name":"root","max":{"cpu":"many"}}`, false},
		{"children's min above max", `{"name":"root","max":{"cpu":"1"},"children":[{"name":"a","min":{"cpu":"600m"}},{"name":"b","min":{"cpu":"600m"}}]}`, false},
		{"children's min as much as max", `{"name":"root","max":{"cpu":"1"},"children":[{"name":"a","min":{"cpu":"600m"}},{"name":"b","min":{"cpu":"400m"}}]}`, true},
		{"a child's max above its parent's", `{"name":"root","max":{"cpu":"1"},"children":[{"name":"a","max":{"cpu":"600"}}]}`, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			facts, err := parseTree("ElasticQuotaTree", &meta{}, []byte(`{"spec":{"root":`+test.root+`}}`))
			if err != nil {
				t.Fatal(err)
			}
			if f := facts.(*TreeObject); (f.Tree != nil) != test.valid {
				t.Errorf("valid is %t, want %t", f.Tree != nil, test.valid)
			}
		})
	}
}

func TestEndsByKind(t *testing.T) {
	type test struct {
		resource, object string
		want             Ending
	}
	var tests []test
	for _, r := range rows {
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
		r := RowOf(string(parts[0]), string(parts[1]), string(parts[2]))
		if r == nil {
			t.Errorf("%s has no row", test.resource)
			continue
		}
		facts, err := r.parse(r.Kind, &meta{}, []byte(test.object))
		if err != nil {
			t.Fatal(err)
		}
		if got := facts.(*Job).End; got != test.want {
			t.Errorf("%s %s: got %q, want %q", test.resource, test.object, got, test.want)
		}
	}
}
