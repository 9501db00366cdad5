package cluster

import (
	"context"
	"encoding/json"
	"path/filepath"

	"kube-queue.dev/kube-queue/test/localcluster/internal/build"
	"kube-queue.dev/kube-queue/test/localcluster/internal/process"
)

const (
	jobSet          = "jobset"
	jobSetNamespace = "jobset-system"
	jobSetModule    = "sigs.k8s.io/jobset"
	jobSetCRD       = "jobset.x-k8s.io_jobsets.yaml"
	// jobSetWebhooks is the folder of a kustomization, in the built component and in the module.
	jobSetWebhooks = "webhook"
)

func init() {
	const webhooks = "config/components/" + jobSetWebhooks
	operators[jobSet] = operator{
		component: build.Component{
			Name:    jobSet,
			Package: jobSetModule,
			Binary:  jobSet,
			LDFlags: "-s -w",
			Files: []build.ModuleFiles{
				{Module: jobSetModule, Into: "crds", Paths: []string{"config/components/crd/bases/" + jobSetCRD}},
				{Module: jobSetModule, Into: jobSetWebhooks, Paths: []string{
					webhooks + "/kustomization.yaml", webhooks + "/kustomizeconfig.yaml",
					webhooks + "/manifests.yaml", webhooks + "/service.yaml",
				}},
				{Module: jobSetModule, Into: jobSetWebhooks + "/patches", Paths: []string{
					webhooks + "/patches/mutating-patch.yaml", webhooks + "/patches/validating-patch.yaml",
				}},
			},
		},
		ports:   []string{"health", "webhook"},
		since:   "1.34",
		prepare: prepareJobSet,
	}
}

// prepareJobSet also registers the webhooks. The controller needs their defaults, and tests their
// validation.
func prepareJobSet(ctx context.Context, s *setup) ([]part, error) {
	built := s.config.Built[operators[jobSet].component.Name]
	certificates := s.folder.Path("tmp", jobSet, webhookCertificates)
	authority, err := webhookCertificate(certificates, jobSet, jobSetNamespace)
	if err != nil {
		return nil, err
	}
	config := s.folder.Path("tmp", jobSet, "config.json")
	if err := s.writeJobSetConfig(config, certificates); err != nil {
		return nil, err
	}
	if err := s.api.create(ctx, "/api/v1/namespaces", named(jobSetNamespace)); err != nil {
		return nil, err
	}
	if err := s.installCRDs(ctx, []string{filepath.Join(built, "crds", jobSetCRD)}); err != nil {
		return nil, err
	}
	address := s.ports.address(jobSet + "-webhook")
	if err := s.registerWebhooks(ctx, filepath.Join(built, jobSetWebhooks), jobSet+"-", address, authority); err != nil {
		return nil, err
	}
	return []part{{
		name:  jobSet,
		rank:  rankOperator,
		ready: s.jobSetReady(),
		grace: defaultGrace,
		spec: process.Spec{
			Name: jobSet,
			Path: filepath.Join(built, jobSet),
			Args: []string{
				"--config=" + config,
				"--health-probe-bind-address=" + s.ports.address(jobSet+"-health"),
				"--metrics-bind-address=0",
				"--leader-elect=false",
				"--kube-api-qps=" + clientQPS,
				"--kube-api-burst=" + clientBurst,
				"--zap-log-level=info",
			},
			Env: s.environment("KUBECONFIG=" + s.credentials.kubeconfig(jobSet)),
			Dir: string(s.folder),
			Log: s.folder.Log(jobSet),
		},
	}}, nil
}

// writeJobSetConfig writes settings that have no flag.
func (s *setup) writeJobSetConfig(path, certificates string) error {
	config, err := json.MarshalIndent(object{
		"apiVersion":             "config.jobset.x-k8s.io/v1alpha1",
		"kind":                   "Configuration",
		"internalCertManagement": object{"enable": false},
		"webhook":                object{"host": "127.0.0.1", "port": s.ports[jobSet+"-webhook"], "certDir": certificates},
	}, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(path, config)
}

// jobSetReady also creates the job, because this is not possible before the webhooks respond.
func (s *setup) jobSetReady() func(context.Context) error {
	answers := healthy(loopback(), "http://"+s.ports.address(jobSet+"-health")+"/readyz")
	probes := []probe{jobSetProbe()}
	acts := s.actsOn(probes)
	submitted := false
	return func(ctx context.Context) error {
		if !submitted {
			if err := answers(ctx); err != nil {
				return err
			}
			if err := s.submit(ctx, probes); err != nil {
				return err
			}
			submitted = true
		}
		return acts(ctx)
	}
}

func jobSetProbe() probe {
	return probe{
		path: "/apis/jobset.x-k8s.io/v1alpha2/namespaces/" + jobSetNamespace + "/jobsets",
		job: object{
			"apiVersion": "jobset.x-k8s.io/v1alpha2",
			"kind":       "JobSet",
			"metadata":   object{"name": readinessJob},
			"spec": object{
				"suspend": true,
				"replicatedJobs": []object{{
					"name": "main",
					"template": object{"spec": object{"template": object{"spec": object{
						"containers": []object{{"name": "main", "image": "none"}},
					}}}},
				}},
			},
		},
	}
}
