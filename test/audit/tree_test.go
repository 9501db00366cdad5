package audit

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
			facts, err := readTree(&metav1.ObjectMeta{}, []byte(`{"spec":{"root":`+test.root+`}}`))
			if err != nil {
				t.Fatal(err)
			}
			if f := facts.(*treeFacts); (f.tree != nil) != test.valid {
				t.Errorf("valid is %t, want %t", f.tree != nil, test.valid)
			}
		})
	}
}
