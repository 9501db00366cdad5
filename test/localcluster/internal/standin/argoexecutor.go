package standin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"kube-queue.dev/kube-queue/test/localcluster/internal/kube"
)

// ArgoExecutor simulates the wait container in the pods of workflows. When a pod has ended, it reports the outputs,
// which the controller needs to complete a node. The value of an output is its default, or else empty. It also ends
// the pods of stopped workflows, because the controller cannot signal processes that do not exist. One process serves
// all pods.
const ArgoExecutor = "argo-executor"

const (
	argoWorkflowLabel  = "workflows.argoproj.io/workflow"
	argoCompletedLabel = "workflows.argoproj.io/completed"
	argoReportedLabel  = "workflows.argoproj.io/report-outputs-completed"
	argoNodeAnnotation = "workflows.argoproj.io/node-id"

	// Environment variables with which the controller configures the executor.
	argoTemplateVariable     = "ARGO_TEMPLATE"
	argoScriptOutputVariable = "ARGO_INCLUDE_SCRIPT_OUTPUT"
)

func serveArgoExecutor(ctx context.Context, client *kube.Client, _ []string) error {
	handle := func(ctx context.Context, pod *pod, deleted bool) error {
		p := argoPod{pod}
		var err error
		switch {
		case p.reports(deleted):
			err = p.report(ctx, client)
		case p.stopped() && !deleted:
			err = endPod(ctx, client, p.path(), exitCodeTerminated)
		}
		if err == nil {
			return nil
		}
		err = fmt.Errorf("pod %s/%s: %w", p.Metadata.Namespace, p.Metadata.Name, err)
		if deleted {
			// This is not retried, because the namespace may be gone too.
			report(err)
			return nil
		}
		return err
	}
	return followPods(ctx, client.Dynamic, argoWorkflowLabel, handle)
}

// argoPod is a pod of a workflow.
type argoPod struct{ *pod }

// exitCodeTerminated is the exit code of a process ended by SIGTERM.
const exitCodeTerminated = 143

// stopped reports whether the pod still runs although the controller has stopped it.
func (p argoPod) stopped() bool {
	return p.Status.Phase == "Running" && p.Metadata.DeletionTimestamp == "" &&
		p.Metadata.Labels[argoCompletedLabel] == "true" &&
		p.Metadata.Annotations[exitCodeAnnotation] != strconv.Itoa(exitCodeTerminated)
}

func (p argoPod) report(ctx context.Context, client *kube.Client) error {
	result, err := json.Marshal(p.taskResult())
	if err != nil {
		return err
	}
	m := p.Metadata
	// Apply, because the result of an earlier workflow with that name may still exist.
	path := "/apis/argoproj.io/v1alpha1/namespaces/" + m.Namespace + "/workflowtaskresults/" + m.Annotations[argoNodeAnnotation]
	return client.Apply(ctx, path, ArgoExecutor, result)
}

// reports reports whether the executor in the pod must write a result now: the pod has ended, or is deleted while
// running.
func (p argoPod) reports(deleted bool) bool {
	if p.Metadata.Annotations[argoNodeAnnotation] == "" || p.Metadata.Labels[argoCompletedLabel] == "true" {
		return false
	}
	switch p.Status.Phase {
	case "Succeeded", "Failed":
		return !deleted
	case "Running":
		return deleted
	}
	return false
}

// taskResult returns the WorkflowTaskResult.
func (p argoPod) taskResult() object {
	var owners []object
	for _, owner := range p.Metadata.OwnerReferences {
		if owner["kind"] == "Workflow" {
			owners = append(owners, object{
				"apiVersion": owner["apiVersion"], "kind": "Workflow", "name": owner["name"], "uid": owner["uid"],
			})
		}
	}
	result := object{
		"apiVersion": "argoproj.io/v1alpha1",
		"kind":       "WorkflowTaskResult",
		"metadata": object{
			"name":            p.Metadata.Annotations[argoNodeAnnotation],
			"namespace":       p.Metadata.Namespace,
			"ownerReferences": owners,
			"labels": map[string]string{
				argoWorkflowLabel: p.Metadata.Labels[argoWorkflowLabel],
				argoReportedLabel: "true",
			},
		},
	}
	if outputs := p.outputs(); len(outputs) > 0 {
		result["outputs"] = outputs
	}
	return result
}

// variable returns an environment variable of any container.
func (p argoPod) variable(name string) string {
	for _, container := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		for _, variable := range container.Env {
			if variable.Name == name {
				return variable.Value
			}
		}
	}
	return ""
}

// outputs returns the outputs that the pod's template declares. The outputs of a template that is
// too large for an environment variable are unknown.
func (p argoPod) outputs() object {
	var template struct {
		Outputs struct {
			Parameters []object
			Artifacts  []any
		}
	}
	outputs := object{}
	if p.variable(argoScriptOutputVariable) == "true" {
		outputs["result"] = ""
	}
	if err := json.Unmarshal([]byte(p.variable(argoTemplateVariable)), &template); err != nil {
		return outputs
	}
	for _, parameter := range template.Outputs.Parameters {
		from, _ := parameter["valueFrom"].(object)
		value := ""
		if from["default"] != nil {
			value = fmt.Sprint(from["default"])
		}
		parameter["value"] = value
	}
	if len(template.Outputs.Parameters) > 0 {
		outputs["parameters"] = template.Outputs.Parameters
	}
	if len(template.Outputs.Artifacts) > 0 {
		outputs["artifacts"] = template.Outputs.Artifacts
	}
	return outputs
}
