package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"kube-queue.dev/kube-queue/test/localcluster/internal/build"
	"kube-queue.dev/kube-queue/test/localcluster/internal/process"
)

const (
	trainingOperator          = "training-operator"
	trainingOperatorNamespace = "kubeflow"
	trainingOperatorModule    = "github.com/kubeflow/training-operator"
)

func init() {
	component := build.Component{
		Name:    "trainingoperator",
		Package: trainingOperatorModule + "/cmd/training-operator.v1",
		Binary:  trainingOperator,
		LDFlags: "-s -w",
		Files:   []build.ModuleFiles{{Module: trainingOperatorModule, Into: "crds"}},
	}
	for _, job := range trainingJobs {
		component.Files[0].Paths = append(component.Files[0].Paths, path.Join("manifests/base/crds", job.crdFile()))
	}
	operators[trainingOperator] = operator{
		component: component,
		ports:     []string{"health", "webhook"},
		prepare:   prepareTrainingOperator,
	}
}

// trainingJob is a kind of job of this operator, with the values for a minimal job: the field of
// the replica specs, a replica type, and the name of the container.
type trainingJob struct{ kind, scheme, plural, field, replica, container string }

var trainingJobs = []trainingJob{
	{"TFJob", "tfjob", "tfjobs", "tfReplicaSpecs", "Worker", "tensorflow"},
	{"PyTorchJob", "pytorchjob", "pytorchjobs", "pytorchReplicaSpecs", "Master", "pytorch"},
	{"MPIJob", "mpijob", "mpijobs", "mpiReplicaSpecs", "Launcher", "mpi"},
	{"XGBoostJob", "xgboostjob", "xgboostjobs", "xgbReplicaSpecs", "Master", "xgboost"},
	{"PaddleJob", "paddlejob", "paddlejobs", "paddleReplicaSpecs", "Worker", "paddle"},
	{"JAXJob", "jaxjob", "jaxjobs", "jaxReplicaSpecs", "Worker", "jax"},
}

func (j trainingJob) crdFile() string { return "kubeflow.org_" + j.plural + ".yaml" }

// trainingJobs returns the kinds that it runs in this cluster. Its MPIJob and that of mpi-operator
// are different versions of one CRD. If both operators run, mpi-operator has MPIJob.
func (c Config) trainingJobs() []trainingJob {
	if !slices.Contains(c.Operators, mpiOperator) {
		return trainingJobs
	}
	return slices.DeleteFunc(slices.Clone(trainingJobs), func(j trainingJob) bool { return j.kind == "MPIJob" })
}

// prepareTrainingOperator creates what the operator's certificate rotation requires, which cannot
// be disabled: a Secret that it fills, a webhook configuration into which it writes the CA, and a
// certificate file. In a real cluster the kubelet copies the Secret to the file. Here the
// configuration contains no webhooks, so any certificate is sufficient.
func prepareTrainingOperator(ctx context.Context, s *setup) ([]part, error) {
	temporary := s.folder.Path("tmp", trainingOperator)
	_, err := webhookCertificate(filepath.Join(temporary, webhookCertificates), trainingOperator, trainingOperatorNamespace)
	if err != nil {
		return nil, err
	}
	if err := touchSharedCertificate(); err != nil {
		return nil, err
	}
	for _, made := range []struct {
		path   string
		object object
	}{
		{"/api/v1/namespaces", named(trainingOperatorNamespace)},
		{"/api/v1/namespaces/" + trainingOperatorNamespace + "/secrets", named("training-operator-webhook-cert")},
		{"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", named("validator.training-operator.kubeflow.org")},
	} {
		if err := s.api.create(ctx, made.path, made.object); err != nil {
			return nil, err
		}
	}
	built := s.config.Built[operators[trainingOperator].component.Name]
	var definitions []string
	var probes []probe
	args := []string{
		"--health-probe-bind-address=" + s.ports.address(trainingOperator+"-health"),
		"--metrics-bind-address=0",
		fmt.Sprintf("--webhook-server-port=%d", s.ports[trainingOperator+"-webhook"]),
		"--kube-api-qps=" + clientQPS,
		"--kube-api-burst=" + clientBurst,
		"--controller-threads=8",
		// Debug logs have several lines for each event and would be slow.
		"--zap-log-level=info",
	}
	for _, job := range s.config.trainingJobs() {
		definitions = append(definitions, filepath.Join(built, "crds", job.crdFile()))
		args = append(args, "--enable-scheme="+job.scheme)
		probes = append(probes, job.probe())
	}
	if err := s.installCRDs(ctx, definitions); err != nil {
		return nil, err
	}
	if err := s.submit(ctx, probes); err != nil {
		return nil, err
	}
	return []part{{
		name:  trainingOperator,
		rank:  rankOperator,
		ready: s.actsOn(probes),
		grace: defaultGrace,
		spec: process.Spec{
			Name: trainingOperator,
			Path: filepath.Join(built, trainingOperator),
			Args: args,
			Env:  s.environment("KUBECONFIG="+s.credentials.kubeconfig(trainingOperator), "TMPDIR="+temporary),
			Dir:  string(s.folder),
			Log:  s.folder.Log(trainingOperator),
		},
	}}, nil
}

func named(name string) object { return object{"metadata": object{"name": name}} }

// sharedCertificate is the path that the operator's certificate rotation checks. It does not depend
// on TMPDIR. The operator does not read the file but requires that it exists, so clusters can share
// it.
const sharedCertificate = "/tmp/" + webhookCertificates + "/tls.crt"

func touchSharedCertificate() error {
	if err := os.MkdirAll(filepath.Dir(sharedCertificate), 0o755); err != nil {
		return fmt.Errorf("%s requires the file %s: %w", trainingOperator, sharedCertificate, err)
	}
	file, err := os.OpenFile(sharedCertificate, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	switch {
	case errors.Is(err, os.ErrExist):
		return nil
	case err != nil:
		return fmt.Errorf("%s requires the file %s: %w", trainingOperator, sharedCertificate, err)
	}
	_, err = file.WriteString("Made by localcluster: training-operator does not start unless this file exists. Nobody reads it.\n")
	return errors.Join(err, file.Close())
}

func (j trainingJob) probe() probe {
	return probe{
		path: "/apis/kubeflow.org/v1/namespaces/" + trainingOperatorNamespace + "/" + j.plural,
		job: object{
			"apiVersion": "kubeflow.org/v1",
			"kind":       j.kind,
			"metadata":   object{"name": readinessJob},
			"spec": object{
				"runPolicy": object{"suspend": true},
				j.field: object{j.replica: object{
					"replicas": 1,
					"template": object{"spec": object{"containers": []object{{"name": j.container, "image": "none"}}}},
				}},
			},
		},
	}
}
