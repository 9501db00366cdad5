package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	trainingOperator       = "training-operator"
	trainingOperatorModule = "github.com/kubeflow/training-operator"
)

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

// training has what the operator's certificate rotation, which cannot be disabled, requires: a Secret that it fills,
// a webhook configuration that it writes the CA into, and a certificate file. In a real cluster, the kubelet copies
// the Secret to the file. Here the configuration contains no webhooks, so any certificate will do.
func training() operator {
	o := operator{
		namespace: "kubeflow",
		ports:     []string{"health", "webhook"},
		yields:    map[string]string{mpiOperator: "mpijob"},
		objects: map[string]object{
			"/api/v1/namespaces/kubeflow/secrets":                                   named("training-operator-webhook-cert"),
			"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations": named("validator.training-operator.kubeflow.org"),
		},
		args: []string{
			"--health-probe-bind-address=${health}", "--metrics-bind-address=0", "--webhook-server-port=${webhookPort}",
			"--kube-api-qps=" + clientQPS, "--kube-api-burst=" + clientBurst, "--controller-threads=8",
			// Debug logs have several lines per event and would be slow.
			"--zap-log-level=info",
		},
		before: touchSharedCertificate,
	}
	var crds []string
	for _, job := range trainingJobs {
		crds = append(crds, "kubeflow.org_"+job.plural)
		o.args = append(o.args, "--enable-scheme="+job.scheme)
		o.jobs = append(o.jobs, probe{
			apiVersion: "kubeflow.org/v1", kind: job.kind, plural: job.plural, namespace: o.namespace,
			spec: fmt.Sprintf("{runPolicy: {suspend: true}, %s: {%s: {replicas: 1, template: {spec: {containers: [{name: %s, image: none}]}}}}}",
				job.field, job.replica, job.container),
		})
	}
	o.component = operatorComponent("trainingoperator", trainingOperatorModule+"/cmd/training-operator.v1", trainingOperator,
		trainingOperatorModule, "manifests/base/crds", crds)
	return o
}

// sharedCertificate is the path that the operator's certificate rotation checks, regardless of TMPDIR. The operator
// only requires that the file exists and does not read it, so clusters can share it.
const sharedCertificate = "/tmp/" + webhookCertificates + "/tls.crt"

func touchSharedCertificate(context.Context, *setup) error {
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
