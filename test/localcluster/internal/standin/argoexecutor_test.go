package standin

import (
	"encoding/json"
	"reflect"
	"testing"

	"kube-queue.dev/kube-queue/test/localcluster/internal/require"
)

func argoPodOf(t *testing.T, text string) argoPod {
	t.Helper()
	p := argoPod{&pod{}}
	require.NoError(t, json.Unmarshal([]byte(text), p.pod))
	return p
}

func TestPodReportsAfterItsEnd(t *testing.T) {
	tests := []struct {
		phase, node, completed string
		deleted, reports       bool
	}{
		{"Pending", "n", "false", false, false},
		{"Running", "n", "false", false, false},
		{"Succeeded", "n", "false", false, true},
		{"Failed", "n", "false", false, true},
		{"Failed", "", "false", false, false},
		{"Succeeded", "n", "true", false, false},
		{"Pending", "n", "false", true, false},
		{"Running", "n", "false", true, true},
		{"Running", "n", "true", true, false},
		{"Succeeded", "n", "false", true, false},
	}
	for _, test := range tests {
		pod := argoPod{&pod{}}
		pod.Status.Phase = test.phase
		pod.Metadata.Annotations = map[string]string{argoNodeAnnotation: test.node}
		pod.Metadata.Labels = map[string]string{argoCompletedLabel: test.completed}
		if got := pod.reports(test.deleted); got != test.reports {
			t.Errorf("%+v: got %v", test, got)
		}
	}
}

func TestPodOfAStoppedWorkflowIsEndedOnce(t *testing.T) {
	for text, want := range map[string]bool{
		`{"metadata": {"labels": {"workflows.argoproj.io/completed": "true"}}, "status": {"phase": "Running"}}`:   true,
		`{"metadata": {"labels": {"workflows.argoproj.io/completed": "false"}}, "status": {"phase": "Running"}}`:  false,
		`{"metadata": {"labels": {"workflows.argoproj.io/completed": "true"}}, "status": {"phase": "Succeeded"}}`: false,
		`{"metadata": {"labels": {"workflows.argoproj.io/completed": "true"},
			"annotations": {"localcluster.kube-queue.dev/exit-code": "143"}}, "status": {"phase": "Running"}}`: false,
		`{"metadata": {"labels": {"workflows.argoproj.io/completed": "true"},
			"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Running"}}`: false,
	} {
		if got := argoPodOf(t, text).stopped(); got != want {
			t.Errorf("%s: got %v", text, got)
		}
	}
}

func TestReportIsThatOfTheWaitContainer(t *testing.T) {
	pod := argoPodOf(t, `{
		"metadata": {
			"name": "steps-run-1", "namespace": "work",
			"labels": {"workflows.argoproj.io/workflow": "steps"},
			"annotations": {"workflows.argoproj.io/node-id": "steps-1"},
			"ownerReferences": [{"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "name": "steps", "uid": "u", "controller": true}]
		},
		"status": {"phase": "Failed"}}`)
	want := fromJSON(t, `{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "WorkflowTaskResult",
		"metadata": {
			"name": "steps-1", "namespace": "work",
			"labels": {"workflows.argoproj.io/workflow": "steps", "workflows.argoproj.io/report-outputs-completed": "true"},
			"ownerReferences": [{"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "name": "steps", "uid": "u"}]
		}}`)
	if got := asJSON(t, pod.taskResult()); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestDeclaredOutputsAreReported(t *testing.T) {
	for name, test := range map[string]struct{ template, script, want string }{
		"none": {`{}`, "false", `{}`},
		"parameters": {
			`{"outputs": {"parameters": [{"name": "a", "valueFrom": {"path": "/a", "default": 7}}, {"name": "b", "valueFrom": {"path": "/b"}}]}}`, "false",
			`{"parameters": [{"name": "a", "valueFrom": {"path": "/a", "default": 7}, "value": "7"}, {"name": "b", "valueFrom": {"path": "/b"}, "value": ""}]}`,
		},
		"artifacts":          {`{"outputs": {"artifacts": [{"name": "a", "path": "/a"}]}}`, "false", `{"artifacts": [{"name": "a", "path": "/a"}]}`},
		"what a script says": {`{}`, "true", `{"result": ""}`},
		"a large template":   {`offloaded`, "true", `{"result": ""}`},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(object{"spec": object{
				"initContainers": []object{{"env": []object{{"name": "ARGO_TEMPLATE", "value": test.template}}}},
				"containers":     []object{{"env": []object{{"name": "ARGO_INCLUDE_SCRIPT_OUTPUT", "value": test.script}}}},
			}})
			require.NoError(t, err)
			if got := asJSON(t, argoPodOf(t, string(text)).outputs()); !reflect.DeepEqual(got, fromJSON(t, test.want)) {
				t.Errorf("got %v", got)
			}
		})
	}
}
