package cluster

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"

	"kube-queue.dev/kube-queue/test/localcluster/internal/build"
	"kube-queue.dev/kube-queue/test/localcluster/internal/standin"
)

// The operators of this file and, in trainingoperator.go, those of the kinds of kubeflow.org/v1.
const (
	argoWorkflows = "argo-workflows"
	jobSet        = "jobset"
	kuberay       = "kuberay"
	mpiOperator   = "mpi-operator"
	sparkOperator = "spark-operator"
	trainer       = "trainer"

	argoModule    = "github.com/argoproj/argo-workflows/v3"
	jobSetModule  = "sigs.k8s.io/jobset"
	kuberayModule = "github.com/ray-project/kuberay/ray-operator"
	sparkModule   = "github.com/kubeflow/spark-operator/v2"
	trainerModule = "github.com/kubeflow/trainer/v2"
)

// Parts of minimal jobs.
const (
	rayHead    = "headGroupSpec: {rayStartParams: {}, template: {spec: {containers: [{name: ray-head, image: none}]}}}"
	mpiReplica = "{replicas: 1, template: {spec: {containers: [{name: mpi, image: none}]}}}"
)

// jobSetConfig has the settings of JobSet that have no flag.
const jobSetConfig = `apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
internalCertManagement: {enable: false}
webhook:
  host: 127.0.0.1
  port: ${webhookPort}
  certDir: "${tmp}/` + webhookCertificates + `"
`

// trainerConfig has the settings of Trainer that have no flag: all except the log level. The folder of the
// certificates cannot be configured.
const trainerConfig = `apiVersion: config.trainer.kubeflow.org/v1alpha1
kind: Configuration
health: {healthProbeBindAddress: "${health}"}
metrics: {bindAddress: "0"}
webhook: {host: 127.0.0.1, port: ${webhookPort}}
certManagement: {enable: false}
clientConnection: {qps: ` + clientQPS + `, burst: ` + clientBurst + `}
`

//go:embed trainer-runtime.yaml
var trainerRuntime []byte

// operators has the known operators by name, which is also the name of their user.
var operators = map[string]operator{
	// The objects are those of the controller's installation manifest. The controller also listens on port 6060 of
	// all addresses, which cannot be changed. It continues if the port is in use.
	argoWorkflows: {
		component: operatorComponent("argoworkflows", argoModule+"/cmd/workflow-controller", "workflow-controller", argoModule, "manifests/base/crds/minimal", []string{
			"argoproj.io_workflows", "argoproj.io_workflowtemplates", "argoproj.io_clusterworkflowtemplates", "argoproj.io_cronworkflows",
			"argoproj.io_workflowtasksets", "argoproj.io_workflowtaskresults", "argoproj.io_workflowartifactgctasks", "argoproj.io_workfloweventbindings",
		}),
		namespace: "argo",
		companion: companion{name: standin.ArgoExecutor},
		objects: map[string]object{"/api/v1/namespaces/argo/configmaps": {
			"metadata": object{"name": "workflow-controller-configmap"},
			// Otherwise the controller serves metrics on port 9090.
			"data": object{"metricsConfig": "{enabled: false}"},
		}},
		args: []string{"--namespace=argo", "--executor-image=none", "--qps=" + clientQPS, "--burst=" + clientBurst, "--loglevel=info"},
		env: []string{
			"LEADER_ELECTION_DISABLE=true",
			// The delay between a change and its processing. The default is 10 seconds. With less than one
			// second the controller would process a workflow before it sees its own writes.
			"DEFAULT_REQUEUE_TIME=1s",
		},
		jobs: []probe{{
			apiVersion: "argoproj.io/v1alpha1", kind: "Workflow", plural: "workflows", namespace: "argo",
			spec:  "{suspend: true, entrypoint: main, templates: [{name: main, container: {image: none, command: [none]}}]}",
			field: "phase", value: "Running",
		}},
	},

	// The webhooks run because the controller needs their defaults, and tests need their validation.
	jobSet: {
		component: operatorComponent(jobSet, jobSetModule, jobSet, jobSetModule, "config/components/crd/bases", []string{"jobset.x-k8s.io_jobsets"},
			build.ModuleFiles{Module: jobSetModule, Into: webhookFolder, Paths: []string{
				"config/components/webhook/kustomization.yaml", "config/components/webhook/kustomizeconfig.yaml",
				"config/components/webhook/manifests.yaml", "config/components/webhook/service.yaml",
			}},
			build.ModuleFiles{Module: jobSetModule, Into: webhookFolder + "/patches", Paths: []string{
				"config/components/webhook/patches/mutating-patch.yaml", "config/components/webhook/patches/validating-patch.yaml",
			}}),
		namespace:     "jobset-system",
		ports:         []string{"health", "webhook"},
		since:         "1.34",
		webhookPrefix: jobSet + "-",
		config:        jobSetConfig,
		args: []string{
			"--config=${config}", "--health-probe-bind-address=${health}", "--metrics-bind-address=0", "--leader-elect=false",
			"--kube-api-qps=" + clientQPS, "--kube-api-burst=" + clientBurst, "--zap-log-level=info",
		},
		jobs: []probe{{
			apiVersion: "jobset.x-k8s.io/v1alpha2", kind: "JobSet", plural: "jobsets", namespace: "jobset-system",
			spec: "{suspend: true, replicatedJobs: [{name: main, template: {spec: {template: {spec: {containers: [{name: main, image: none}]}}}}}]}",
		}},
	},

	// KubeRay starts only if all of its kinds are served. RayCronJob is not included: it is an alpha feature and off
	// by default. The operator reaches the dashboards of all Ray clusters through its HTTP proxy, because the names
	// of Services cannot be resolved in this cluster. The two jobs have no condition in common.
	kuberay: {
		component: operatorComponent(kuberay, kuberayModule, kuberay, kuberayModule, "config/crd/bases",
			[]string{"ray.io_rayclusters", "ray.io_rayjobs", "ray.io_rayservices"}),
		namespace: "kuberay-system",
		ports:     []string{"dashboard"},
		companion: companion{
			name: standin.RayDashboard,
			args: []string{"--listen=${dashboard}", "--run-time=${podRunTime}"},
			url:  "http://${dashboard}" + standin.HealthPath,
		},
		args: []string{
			"--enable-leader-election=false", "--health-probe-bind-address=0", "--metrics-addr=0",
			"--qps=" + clientQPS, "--burst=" + clientBurst, "--reconcile-concurrency=8", "--log-stdout-encoder=console",
		},
		env: []string{"HTTP_PROXY=http://${dashboard}", "NO_PROXY=127.0.0.1,localhost"},
		jobs: []probe{
			{
				apiVersion: "ray.io/v1", kind: "RayCluster", plural: "rayclusters", namespace: "kuberay-system",
				spec:  "{suspend: true, " + rayHead + "}",
				field: "state", value: "suspended",
			},
			{
				apiVersion: "ray.io/v1", kind: "RayJob", plural: "rayjobs", namespace: "kuberay-system",
				// The operator requires shutdownAfterJobFinishes for suspended jobs.
				spec:  "{suspend: true, shutdownAfterJobFinishes: true, entrypoint: none, rayClusterSpec: {" + rayHead + "}}",
				field: "jobDeploymentStatus", value: "Suspended",
			},
		},
	},

	// mpi-operator exits without the CRD, and without the namespace of its lease.
	mpiOperator: {
		// Its own main function allows configuring the port.
		component: operatorComponent("mpioperator", ".", mpiOperator, "github.com/kubeflow/mpi-operator", "manifests/base",
			[]string{"kubeflow.org_mpijobs"}),
		namespace: mpiOperator,
		ports:     []string{"health"},
		args: []string{
			"--lock-namespace=" + mpiOperator, "--monitoring-port=0", "--kube-api-qps=" + clientQPS, "--kube-api-burst=" + clientBurst,
			// The rate limit of its queue per second. The default is 10.
			"--controller-queue-rate-limit=" + clientQPS, "--controller-queue-burst=" + clientBurst, "--threadiness=8",
		},
		env: []string{"HEALTH_PORT=${healthPort}"},
		jobs: []probe{{
			apiVersion: "kubeflow.org/v2beta1", kind: "MPIJob", plural: "mpijobs", namespace: mpiOperator,
			spec: "{runPolicy: {suspend: true}, mpiReplicaSpecs: {Launcher: " + mpiReplica + ", Worker: " + mpiReplica + "}}",
		}},
	},

	// The objects are those of the operator's chart. The operator starts only if all of its kinds are served. The
	// webhook does not run. Pods therefore lack what only the webhook adds, such as sidecars and spec.driver.gpu, and
	// applications have no defaults.
	sparkOperator: {
		component: operatorComponent("sparkoperator", sparkModule+"/cmd/operator", sparkOperator, sparkModule, "config/crd/bases", []string{
			"sparkoperator.k8s.io_sparkapplications", "sparkoperator.k8s.io_scheduledsparkapplications", "sparkoperator.k8s.io_sparkconnects",
		}),
		namespace: sparkOperator,
		companion: companion{name: standin.SparkDriver},
		// The ServiceAccount of drivers, with the name in the chart.
		objects: map[string]object{"/api/v1/namespaces/" + sparkOperator + "/serviceaccounts": named("spark-operator-spark")},
		args: []string{
			"controller", "start",
			// All namespaces.
			"--namespaces=",
			"--enable-ui-service=false", "--health-probe-bind-address=0", "--metrics-bind-address=0",
			"--kube-api-qps=" + clientQPS, "--kube-api-burst=" + clientBurst,
			"--workqueue-ratelimiter-bucket-qps=" + clientQPS, "--workqueue-ratelimiter-bucket-size=" + clientBurst,
			"--zap-log-level=info",
		},
		// The last two are the address of the API server for spark-submit.
		env: []string{"SPARK_HOME=${tmp}", "KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=${apiPort}"},
		// The command that the operator calls inherits the operator's environment, and with it the user.
		before: func(_ context.Context, s *setup) error {
			bin := filepath.Join(s.temporary(sparkOperator), "bin")
			if err := os.MkdirAll(bin, 0o755); err != nil {
				return err
			}
			script := fmt.Sprintf("#!/bin/sh\nexec %s %s %s \"$@\"\n", ourselves(), standin.Command, standin.SparkSubmit)
			return os.WriteFile(filepath.Join(bin, "spark-submit"), []byte(script), 0o755)
		},
		jobs: []probe{{
			apiVersion: "sparkoperator.k8s.io/v1beta2", kind: "SparkApplication", plural: "sparkapplications", namespace: sparkOperator,
			spec: `{suspend: true, type: Scala, mode: cluster, sparkVersion: "3.5.0", image: none,` +
				` mainApplicationFile: "local:///none.jar", driver: {}, executor: {}}`,
			field: "applicationState.state", value: "SUSPENDED",
		}},
	},

	// The webhooks refuse jobs that do not fit their runtime.
	trainer: {
		component: operatorComponent(trainer, trainerModule+"/cmd/trainer-controller-manager", trainer, trainerModule, "manifests/base/crds", []string{
			"trainer.kubeflow.org_trainjobs", "trainer.kubeflow.org_trainingruntimes", "trainer.kubeflow.org_clustertrainingruntimes",
		}, build.ModuleFiles{Module: trainerModule, Into: webhookFolder, Paths: []string{
			"manifests/base/webhook/kustomization.yaml", "manifests/base/webhook/kustomizeconfig.yaml", "manifests/base/webhook/manifests.yaml",
			"manifests/base/webhook/patch_mutating.yaml", "manifests/base/webhook/patch_validating.yaml",
		}}),
		namespace: "kubeflow-system",
		ports:     []string{"health", "webhook"},
		needs:     []string{jobSet},
		config:    trainerConfig,
		args:      []string{"--config=${config}", "--zap-log-level=info"},
		// The controller checks for this CRD when it starts.
		before: func(ctx context.Context, s *setup) error {
			return waitFor(ctx, "kind JobSet", func(ctx context.Context) error {
				return s.api.Get(ctx, "/apis/jobset.x-k8s.io/v1alpha2/jobsets?limit=1", &struct{}{})
			})
		},
		// The runtime stays for use by tests.
		beforeJobs: func(ctx context.Context, s *setup) error {
			const path = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes/torch-distributed"
			return s.api.Apply(ctx, path, fieldManager, trainerRuntime)
		},
		jobs: []probe{
			{
				apiVersion: "trainer.kubeflow.org/v1alpha1", kind: "TrainJob", plural: "trainjobs", namespace: "kubeflow-system",
				spec: "{suspend: true, runtimeRef: {name: torch-distributed}}",
			},
			// A suspended TrainJob has condition Suspended even without its JobSet.
			{apiVersion: "jobset.x-k8s.io/v1alpha2", kind: "JobSet", plural: "jobsets", namespace: "kubeflow-system"},
		},
	},

	trainingOperator: training(),
}
