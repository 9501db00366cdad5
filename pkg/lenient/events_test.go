package lenient

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
)

// named returns a unit that requests this amount of cpu. Unlike unitText, it contains nothing that looks like an
// unreadable quantity.
func named(name, cpu string) string {
	return fmt.Sprintf(`{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"QueueUnit","metadata":{"name":%q,"managedFields":[{"fieldsV1":{"f:spec":{%q:{}}}}]},
		"spec":{"consumerRef":{"apiVersion":"v1","kind":"Thing","name":"t"},"resource":{"cpu":%s}}}`, name, "f:"+name, cpu)
}

// show returns the type, name, cpu and managed fields of an event's object, or the error.
func show(kind watch.EventType, object runtime.Object) string {
	switch object := object.(type) {
	case *schedulingv1alpha1.QueueUnit:
		return fmt.Sprintf("%s %s %s %s", kind, object.Name, object.Spec.Resource.Cpu(), object.ManagedFields[0].FieldsV1.GetRawString())
	case *Unreadable:
		return fmt.Sprintf("%s %s unreadable", kind, object.Name)
	case *metav1.Status:
		return fmt.Sprintf("%s %d", kind, object.Code)
	default:
		return fmt.Sprintf("%s %T", kind, object)
	}
}

func TestEvents(t *testing.T) {
	start := time.Now()
	texts := strings.Join([]string{
		`{"type":"ADDED","object":` + named("a", `"1500m"`) + `}`,
		`{"object":` + named("b", "2") + `,"type":"MODIFIED","more":{"of":["it"]}}`,
		`{"type":"DELETED","object":` + named("c", `"1e1.5"`) + `}`,
		`{"type":"ADDED","object":` + named("d", `"1e-1000000000"`) + `}`,
		`{"type":"ADDED","object":` + named("e", `"1e3"`) + `}`,
		`{"type":"BOOKMARK","object":` + named("g", "0") + `}`,
		`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"code":410}}`,
		`{"type":"ADDED","object":` + named("f", "1"),
	}, "\n")
	events := newEvents(unitKind, io.NopCloser(strings.NewReader(texts)))
	// They are checked after all are read: objects must not share memory.
	type event struct {
		kind   watch.EventType
		object runtime.Object
	}
	var seen []event
	for {
		kind, object, err := events.Decode()
		if err != nil {
			if err != io.ErrUnexpectedEOF { // the watcher compares it
				t.Errorf("it ends with %v", err)
			}
			break
		}
		seen = append(seen, event{kind, object})
	}
	var got []string
	for _, e := range seen {
		got = append(got, show(e.kind, e.object))
	}
	want := []string{
		`ADDED a 1500m {"f:spec":{"f:a":{}}}`, `MODIFIED b 2 {"f:spec":{"f:b":{}}}`, "DELETED c unreadable", "ADDED d unreadable",
		`ADDED e 1e3 {"f:spec":{"f:e":{}}}`, `BOOKMARK g 0 {"f:spec":{"f:g":{}}}`, "ERROR 410",
	}
	if !slices.Equal(got, want) {
		t.Errorf("they report %q, want %q", got, want)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestAnEventThatIsNoneIsAnError(t *testing.T) {
	for _, text := range []string{`{"type":"ADDED","object":7}`, `{"type":"ADDED","object":{"metadata":7}}`, `{"type":7,"object":{}}`, `{"type":"ADDED" "object":{}}`, `x`} {
		if kind, object, err := newEvents(unitKind, io.NopCloser(strings.NewReader(text))).Decode(); err == nil {
			t.Errorf("%s is read as %s %+v", text, kind, object)
		}
	}
}
