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

// argoKinds are the kinds that the controller watches.
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

// prepareArgoWorkflows creates the objects of the controller's installation manifest. The
// controller also listens on port 6060 of all addresses, which cannot be configured. It continues
// if the port is in use.
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
	// Otherwise the controller serves metrics on port 9090.
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
				// The delay between a change and its processing. The default is 10 seconds. With
				// less than one second the controller would process a workflow before it sees its
				// own writes.
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

// argoWorkflowsReady passes when the controller has processed a suspended workflow. The phase of
// the workflow is then Running.
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
