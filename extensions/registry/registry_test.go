package registry

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/extensions/framework"
)

func TestParse(t *testing.T) {
	tests := []struct{ name, list, want, err string }{
		{"the default is the two kinds of the training operator", Default, "tfjob pytorchjob", ""},
		{"an empty list means none", "", "", ""},
		{"spaces and empty parts do not matter", " job , ,tfjob", "job tfjob", ""},
		{"a name given twice is one", "job,job", "job", ""},
		{"an unknown name is refused with the list of known ones", "job,spark", "", `unknown extension "spark"; known extensions are tfjob, pytorchjob, `},
		{"a kind with two names is enabled by either, once", "rayjobv1alpha1,rayjob", "rayjob", ""},
		{"that list has each name of a kind", "spark", "", "rayjob, rayjobv1alpha1, raycluster, workflow, pod"},
		{"a former name is refused with those that replace it", "mpijob", "", `unknown extension "mpijob"; use mpiv1`},
		{"case matters", "TFJob", "", `unknown extension "TFJob"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			adapters, err := Parse(test.list)
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("error is %v", err)
			}
			var names []string
			for _, adapter := range adapters {
				names = append(names, adapter.Kind().Name)
			}
			if got := strings.Join(names, " "); got != test.want {
				t.Errorf("enabled are %q, not %q", got, test.want)
			}
		})
	}
}

func TestKindsAreDistinguished(t *testing.T) {
	seen := map[string]bool{}
	for _, adapter := range All() {
		kind := adapter.Kind()
		if kind.Name == "" || kind.Resource == "" || len(kind.SuspendPath) == 0 || kind.Kind == "" {
			t.Errorf("kind %+v is incomplete", kind)
		}
		for _, word := range append(namesOf(adapter), kind.GroupVersionKind.String()) {
			if seen[word] {
				t.Errorf("%s is there twice", word)
			}
			seen[word] = true
		}
		if _, reads := adapter.(framework.RelatedReader); reads != (kind.Related.Resource != "") {
			t.Errorf("kind %s has related objects %q, and who reads them: %t", kind.Kind, kind.Related.Resource, reads)
		}
		if _, reads := adapter.(framework.ScaledReader); reads != (kind.Remains != "") {
			t.Errorf("of kind %s remain %q, and who reads them: %t", kind.Kind, kind.Remains, reads)
		}
	}
}

// The hold policies are generated from the kind, so the adapter must do the same.
func TestAHoldSetsWhatTheKindSays(t *testing.T) {
	for _, adapter := range All() {
		kind := adapter.Kind()
		text, err := json.Marshal(adapter.SuspendPatch(adapter.New(), true))
		if err != nil {
			t.Fatalf("extension %s: %v", kind.Name, err)
		}
		var patch map[string]any
		if err := json.Unmarshal(text, &patch); err != nil {
			t.Fatalf("extension %s: %v", kind.Name, err)
		}
		for _, setting := range kind.Sets {
			if value, _, err := unstructured.NestedFieldNoCopy(patch, setting.Path...); err != nil || value != setting.Value {
				t.Errorf("extension %s: a hold sets %v to %v (%v), the kind says %v", kind.Name, setting.Path, value, err, setting.Value)
			}
			note, _, err := unstructured.NestedString(patch, "metadata", "annotations", setting.Annotation)
			if err != nil || (note == "false") != (setting.Annotation != "") {
				t.Errorf("extension %s: a hold notes %q in annotation %q: %v", kind.Name, note, setting.Annotation, err)
			}
			if setting.Why == "" {
				t.Errorf("extension %s: nobody says why a hold sets %v", kind.Name, setting.Path)
			}
		}
	}
}
