package cluster

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"path/filepath"

	"kube-queue.dev/kube-queue/test/localcluster/internal/build"
	"kube-queue.dev/kube-queue/test/localcluster/internal/process"
)

const (
	trainer          = "trainer"
	trainerNamespace = "kubeflow-system"
	trainerModule    = "github.com/kubeflow/trainer/v2"
	trainerAPI       = "/apis/trainer.kubeflow.org/v1alpha1"
	// trainerWebhooks is the folder of a kustomization, in the built component and in the module.
	trainerWebhooks = "webhook"
	trainerRuntime  = "torch-distributed"
)

//go:embed trainer-runtime.yaml
var trainerRuntimeYAML []byte

// trainerCRDs are the files of its CRDs.
var trainerCRDs = []string{
	"trainer.kubeflow.org_trainjobs.yaml",
	"trainer.kubeflow.org_trainingruntimes.yaml",
	"trainer.kubeflow.org_clustertrainingruntimes.yaml",
}

func init() {
	const webhooks = "manifests/base/" + trainerWebhooks
	component := build.Component{
		Name:    trainer,
		Package: trainerModule + "/cmd/trainer-controller-manager",
		Binary:  trainer,
		LDFlags: "-s -w",
		Files: []build.ModuleFiles{
			{Module: trainerModule, Into: "crds"},
			{Module: trainerModule, Into: trainerWebhooks, Paths: []string{
				webhooks + "/kustomization.yaml", webhooks + "/kustomizeconfig.yaml", webhooks + "/manifests.yaml",
				webhooks + "/patch_mutating.yaml", webhooks + "/patch_validating.yaml",
			}},
		},
	}
	for _, file := range trainerCRDs {
		component.Files[0].Paths = append(component.Files[0].Paths, "manifests/base/crds/"+file)
	}
	operators[trainer] = operator{
		component: component,
		ports:     []string{"health", "webhook"},
		needs:     []string{jobSet},
		prepare:   prepareTrainer,
	}
}

// prepareTrainer also registers the webhooks, which refuse jobs that do not fit their runtime. The
// JobSet CRD must be served before, because the controller checks for it when it starts.
func prepareTrainer(ctx context.Context, s *setup) ([]part, error) {
	built := s.config.Built[operators[trainer].component.Name]
	temporary := s.folder.Path("tmp", trainer)
	authority, err := webhookCertificate(filepath.Join(temporary, webhookCertificates), trainer, trainerNamespace)
	if err != nil {
		return nil, err
	}
	config := filepath.Join(temporary, "config.json")
	if err := s.writeTrainerConfig(config); err != nil {
		return nil, err
	}
	if err := s.api.create(ctx, "/api/v1/namespaces", named(trainerNamespace)); err != nil {
		return nil, err
	}
	var definitions []string
	for _, file := range trainerCRDs {
		definitions = append(definitions, filepath.Join(built, "crds", file))
	}
	if err := s.installCRDs(ctx, definitions); err != nil {
		return nil, err
	}
	address := s.ports.address(trainer + "-webhook")
	if err := s.registerWebhooks(ctx, filepath.Join(built, trainerWebhooks), "", address, authority); err != nil {
		return nil, err
	}
	err = waitFor(ctx, "kind JobSet", func(ctx context.Context) error {
		return s.api.get(ctx, "/apis/jobset.x-k8s.io/v1alpha2/jobsets?limit=1", &struct{}{})
	})
	if err != nil {
		return nil, err
	}
	return []part{{
		name:  trainer,
		rank:  rankOperator,
		ready: s.trainerReady(),
		grace: defaultGrace,
		spec: process.Spec{
			Name: trainer,
			Path: filepath.Join(built, trainer),
			Args: []string{"--config=" + config, "--zap-log-level=info"},
			Env:  s.environment("KUBECONFIG="+s.credentials.kubeconfig(trainer), "TMPDIR="+temporary),
			Dir:  string(s.folder),
			Log:  s.folder.Log(trainer),
		},
	}}, nil
}

// writeTrainerConfig writes the settings that have no flag, which are all but the log level. The
// folder of the certificates cannot be configured. It is in TMPDIR.
func (s *setup) writeTrainerConfig(path string) error {
	config, err := json.MarshalIndent(object{
		"apiVersion":       "config.trainer.kubeflow.org/v1alpha1",
		"kind":             "Configuration",
		"health":           object{"healthProbeBindAddress": s.ports.address(trainer + "-health")},
		"metrics":          object{"bindAddress": "0"},
		"webhook":          object{"host": "127.0.0.1", "port": s.ports[trainer+"-webhook"]},
		"certManagement":   object{"enable": false},
		"clientConnection": object{"qps": json.Number(clientQPS), "burst": json.Number(clientBurst)},
	}, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(path, config)
}

// trainerReady also creates the runtime and the job, because this is not possible before the
// webhooks respond. It checks the JobSet too, because a suspended job has condition Suspended even
// without it. The runtime remains for use by tests.
func (s *setup) trainerReady() func(context.Context) error {
	answers := healthy(loopback(), "http://"+s.ports.address(trainer+"-health")+"/readyz")
	probes := []probe{trainerProbe()}
	acts := s.actsOn(probes)
	child := jobSetProbe()
	child.path = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/" + trainerNamespace + "/jobsets"
	submitted := false
	return func(ctx context.Context) error {
		if !submitted {
			if err := answers(ctx); err != nil {
				return err
			}
			if err := s.api.apply(ctx, trainerAPI+"/clustertrainingruntimes/"+trainerRuntime, trainerRuntimeYAML); err != nil {
				return fmt.Errorf("apply runtime %s: %w", trainerRuntime, err)
			}
			if err := s.submit(ctx, probes); err != nil {
				return err
			}
			submitted = true
		}
		if err := s.handled(ctx, child); err != nil {
			return err
		}
		return acts(ctx)
	}
}

func trainerProbe() probe {
	return probe{
		path: trainerAPI + "/namespaces/" + trainerNamespace + "/trainjobs",
		job: object{
			"apiVersion": "trainer.kubeflow.org/v1alpha1",
			"kind":       "TrainJob",
			"metadata":   object{"name": readinessJob},
			"spec":       object{"suspend": true, "runtimeRef": object{"name": trainerRuntime}},
		},
	}
}
