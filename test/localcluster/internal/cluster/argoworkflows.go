package cluster

import (
	"context"
	"errors"
	"path"
	"path/filepath"

	"kube-queue.dev/kube-queue/test/localcluster/internal/build"
	"kube-queue.dev/kube-queue/test/localcluster/internal/process"
	"kube-queue.dev/kube-queue/test/localcluster/internal/standin"
)

const (
	argoWorkflows       = "argo-workflows"
	argoWorkflowsModule = "github.com/argoproj/argo-workflows/v3"
	argoNamespace       = "argo"
	argoProgram         = "workflow-controller"
)

// argoKinds are those it watches.
var argoKinds = []string{
	"workflows", "workflowtemplates", "clusterworkflowtemplates", "cronworkflows",
	"workflowtasksets", "workflowtaskresults", "workflowartifactgctasks", "workfloweventbindings",
}

func init() {
	component := build.Component{
		Name:    "argoworkflows",
		Package: argoWorkflowsModule + "/cmd/workflow-controller",
		Binary:  argoProgram,
		LDFlags: "-s -w",
		Files:   []build.ModuleFiles{{Module: argoWorkflowsModule, Into: "crds"}},
	}
	for _, plural := range argoKinds {
		component.Files[0].Paths = append(component.Files[0].Paths, path.Join("manifests/base/crds/minimal", argoCRDFile(plural)))
	}
	operators[argoWorkflows] = operator{
		component:  component,
		companions: []string{standin.ArgoExecutor},
		prepare:    prepareArgoWorkflows,
	}
}

func argoCRDFile(plural string) string { return "argoproj.io_" + plural + ".yaml" }

// prepareArgoWorkflows gives the controller what its installation manifest would.
// It wants to listen on port 6060 of every address as well, which nothing can
// change, and goes on without if another cluster's controller has it.
func prepareArgoWorkflows(ctx context.Context, s *setup) ([]part, error) {
	built := s.config.Built[operators[argoWorkflows].component.Name]
	var definitions []string
	for _, plural := range argoKinds {
		definitions = append(definitions, filepath.Join(built, "crds", argoCRDFile(plural)))
	}
	if err := s.installCRDs(ctx, definitions); err != nil {
		return nil, err
	}
	if err := s.api.create(ctx, "/api/v1/namespaces", named(argoNamespace)); err != nil {
		return nil, err
	}
	config := named("workflow-controller-configmap")
	// Else it serves metrics on port 9090.
	config["data"] = object{"metricsConfig": "{enabled: false}"}
	if err := s.api.create(ctx, "/api/v1/namespaces/"+argoNamespace+"/configmaps", config); err != nil {
		return nil, err
	}
	if err := s.submit(ctx, []probe{argoProbe()}); err != nil {
		return nil, err
	}
	return []part{s.standIn(standin.ArgoExecutor), {
		name:  argoWorkflows,
		rank:  rankOperator,
		ready: s.argoWorkflowsReady,
		grace: defaultGrace,
		spec: process.Spec{
			Name: argoWorkflows,
			Path: filepath.Join(built, argoProgram),
			Args: []string{
				"--namespace=" + argoNamespace,
				"--executor-image=none",
				"--qps=" + clientQPS,
				"--burst=" + clientBurst,
				"--loglevel=info",
			},
			Env: s.environment(
				"KUBECONFIG="+s.credentials.kubeconfig(argoWorkflows),
				"LEADER_ELECTION_DISABLE=true",
				// How long it lets a change rest before it looks at the workflow; of
				// itself 10 seconds. With less than one it would see its own writes late.
				"DEFAULT_REQUEUE_TIME=1s",
			),
			Dir: string(s.folder),
			Log: s.folder.Log(argoWorkflows),
		},
	}}, nil
}

func argoProbe() probe {
	return probe{
		path: "/apis/argoproj.io/v1alpha1/namespaces/" + argoNamespace + "/workflows",
		job: object{
			"apiVersion": "argoproj.io/v1alpha1",
			"kind":       "Workflow",
			"metadata":   object{"name": readinessJob},
			"spec": object{
				"suspend":    true,
				"entrypoint": "main",
				"templates": []object{{
					"name":      "main",
					"container": object{"image": "none", "command": []string{"none"}},
				}},
			},
		},
	}
}

// argoWorkflowsReady passes when the controller has taken up a suspended workflow,
// which then counts as running.
func (s *setup) argoWorkflowsReady(ctx context.Context) error {
	var found struct{ Status struct{ Phase string } }
	path := argoProbe().path + "/" + readinessJob
	if err := s.api.get(ctx, path, &found); err != nil {
		return err
	}
	if found.Status.Phase != "Running" {
		return errors.New("a suspended Workflow is not handled yet")
	}
	return s.api.delete(ctx, path)
}
