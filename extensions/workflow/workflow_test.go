package workflow

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/extensions/framework/adaptertest"
	"kube-queue.dev/kube-queue/test/require"
)

func TestJobs(t *testing.T) { adaptertest.Run(t, New()) }

func TestDamagedJobs(t *testing.T) { adaptertest.Fuzz(t, New()) }

func TestNodesAreCounted(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want Nodes
	}{
		"none":                 {`null`, Nodes{}},
		"an empty map":         {`{}`, Nodes{}},
		"a pod that runs":      {`{"a":{"type":"Pod","phase":"Running"}}`, Nodes{Count: 1, Unfinished: 1, Running: 1}},
		"one that waits":       {`{"a":{"type":"Pod","phase":"Pending"}}`, Nodes{Count: 1, Unfinished: 1}},
		"one of no phase yet":  {`{"a":{"type":"Pod"}}`, Nodes{Count: 1, Unfinished: 1}},
		"one without a lock":   {`{"a":{"type":"Pod","phase":"Pending","synchronizationStatus":{"waiting":"n/Mutex/m"}}}`, Nodes{Count: 1}},
		"pods that have ended": {`{"a":{"type":"Pod","phase":"Succeeded"},"b":{"type":"Pod","phase":"Failed"},"c":{"type":"Pod","phase":"Error"},"d":{"type":"Pod","phase":"Omitted"},"e":{"type":"Pod","phase":"Skipped"}}`, Nodes{Count: 5}},
		"nodes without pods":   {`{"a":{"type":"DAG","phase":"Running"},"b":{"type":"Suspend","phase":"Running"},"c":{"type":"Retry"}}`, Nodes{Count: 3}},
		"a call by the agent":  {`{"a":{"type":"HTTP","phase":"Running"},"b":{"type":"Plugin","phase":"Pending"}}`, Nodes{Count: 2, Unfinished: 2, Running: 1}},
		"a node that is null":  {`{"a":null}`, Nodes{Count: 1}},
		"names in other cases": {`{"a":{"Type":"Pod","PHASE":"Running"}}`, Nodes{Count: 1}},
		"a list":               {`[{"type":"Pod","phase":"Running"}]`, Nodes{Unreadable: true}},
		"a text":               {`"none"`, Nodes{Unreadable: true}},
		"a node that is none":  {`{"a":7}`, Nodes{Unreadable: true}},
		"a phase that is none": {`{"a":{"type":"Pod","phase":{}}}`, Nodes{Unreadable: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Nodes{Count: 9}
			if err := json.Unmarshal([]byte(test.text), &got); err != nil || got != test.want {
				t.Errorf("they are read as %+v, not %+v (%v)", got, test.want, err)
			}
		})
	}
}

func TestAWorkflowWithManyNodesIsKeptSmall(t *testing.T) {
	var nodes strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&nodes, `"wf-%d":{"id":"wf-%d","type":"Pod","phase":"Running","message":"%s"},`, i, i, strings.Repeat("x", 100))
	}
	text := `{"spec":{"templates":[{"name":"main","container":{"image":"x"}}]},"status":{"nodes":{` + strings.TrimSuffix(nodes.String(), ",") + `}}}`
	workflow := &Workflow{}
	require.NoError(t, json.Unmarshal([]byte(text), workflow))
	if want := (Nodes{Count: 5000, Unfinished: 5000, Running: 5000}); workflow.Status.Nodes != want {
		t.Errorf("its nodes are %+v, not %+v", workflow.Status.Nodes, want)
	}
	kept, err := json.Marshal(workflow)
	require.NoError(t, err)
	if len(kept) > 1000 {
		t.Errorf("%d bytes are kept of %d", len(kept), len(text))
	}
}

func TestACopyIsWholeAndItsOwn(t *testing.T) {
	original := &Workflow{}
	text := `{"metadata":{"name":"a","annotations":{"x":"y"}},"spec":{"suspend":true,"templates":[{"name":"t","suspend":{}}],"activeDeadlineSeconds":5},"status":{"phase":"Running","nodes":{"a":{"type":"Pod"}}}}`
	require.NoError(t, json.Unmarshal([]byte(text), original))
	before, _ := json.Marshal(original)
	copied := original.DeepCopyObject().(*Workflow)
	if got, _ := json.Marshal(copied); string(got) != string(before) {
		t.Errorf("the copy is %s, not %s", got, before)
	}
	*copied.Spec.Suspend, copied.Spec.Templates[0].Name, copied.Annotations["x"] = false, "u", "z"
	if after, _ := json.Marshal(original); string(after) != string(before) {
		t.Errorf("with the copy the original became %s", after)
	}
}
