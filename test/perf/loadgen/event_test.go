package loadgen

import (
	"testing"
)

func TestEventIsReadWithAnyOtherFields(t *testing.T) {
	for _, c := range []struct {
		name, line                                 string
		kind, namespace, unit, version, phase, why string
	}{
		{
			name: "a unit that waits",
			line: `{"type":"MODIFIED","object":{"apiVersion":"v1","kind":"QueueUnit","metadata":{"managedFields":[{"fieldsV1":{"f:status":{"f:phase":{}}},"name":"other"}],` +
				`"name":"a-job-000000000f","namespace":"n","resourceVersion":"17"},"spec":{"consumerRef":{"name":"job"},"priority":-1.5e3,"active":true},` +
				`"status":{"conditions":[{"reason":"Other","status":"True"}],"message":"\"phase\":\"no\" \\","phase":"Enqueued","reason":"NoQuota"}}}` + "\n",
			kind: "MODIFIED", namespace: "n", unit: "a-job-000000000f", version: "17", phase: "Enqueued", why: "NoQuota",
		},
		{
			name: "fields in another order, with spaces",
			line: ` { "object" : { "status" : { "phase" : "Dequeued" } , "metadata" : { "name" : "u" , "resourceVersion" : "2" } } , "type" : "ADDED" } `,
			kind: "ADDED", unit: "u", version: "2", phase: "Dequeued",
		},
		{
			name: "a bookmark",
			line: `{"type":"BOOKMARK","object":{"kind":"QueueUnit","metadata":{"resourceVersion":"99","creationTimestamp":null},"spec":{"consumerRef":{}}}}`,
			kind: "BOOKMARK", version: "99",
		},
		{
			name: "an error",
			line: `{"type":"ERROR","object":{"kind":"Status","metadata":{},"status":"Failure","message":"too old","code":410}}`,
			kind: "ERROR",
		},
		{name: "a unit without a status", line: `{"type":"ADDED","object":{"metadata":{"name":"u"},"status":{}}}`, kind: "ADDED", unit: "u"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var e Event
			if err := e.read([]byte(c.line)); err != nil {
				t.Fatal(err)
			}
			got := [...]string{string(e.Type), string(e.Namespace), string(e.Name), string(e.Version), string(e.Phase), string(e.Reason)}
			if want := [...]string{c.kind, c.namespace, c.unit, c.version, c.phase, c.why}; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestInvalidEventsAreRefused(t *testing.T) {
	for _, line := range []string{
		"", "{", "[]", `{"type"`, `{"type":"ADDED"`, `{"type":"ADDED","object":{"metadata":{"name":"u`, `{"object":{}}`, `{"type":"ADDED","object":[1,2`, "404 page not found",
	} {
		var e Event
		if err := e.read([]byte(line)); err == nil {
			t.Errorf("%q is read as %+v", line, e)
		}
	}
}

// FuzzEvents verifies that no line, however broken, crashes the reader or makes it loop
// forever.
func FuzzEvents(f *testing.F) {
	f.Add(`{"type":"ADDED","object":{"metadata":{"name":"u"},"status":{"phase":"Dequeued"}}}`)
	f.Add(`{"type":"ADDED","object":{"metadata":{"name":"u\\"},"status":[{},{"a":[]}]}}`)
	f.Add(`{"type":,}`)
	f.Fuzz(func(t *testing.T, line string) {
		var e Event
		if err := e.read([]byte(line)); err == nil && e.Type == nil {
			t.Errorf("%q has no type", line)
		}
	})
}
