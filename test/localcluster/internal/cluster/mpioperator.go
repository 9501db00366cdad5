package cluster

import (
	"context"
	"path/filepath"
	"strconv"

	"kube-queue.dev/kube-queue/test/localcluster/internal/build"
	"kube-queue.dev/kube-queue/test/localcluster/internal/process"
)

const (
	mpiOperator          = "mpi-operator"
	mpiOperatorNamespace = "mpi-operator"
	mpiOperatorCRD       = "kubeflow.org_mpijobs.yaml"
)

func init() {
	operators[mpiOperator] = operator{
		component: build.Component{
			Name: "mpioperator",
			// With its own main function, to configure the port.
			Package: ".",
			Binary:  mpiOperator,
			LDFlags: "-s -w",
			Files: []build.ModuleFiles{{
				Module: "github.com/kubeflow/mpi-operator",
				Paths:  []string{"manifests/base/" + mpiOperatorCRD},
				Into:   "crds",
			}},
		},
		ports:   []string{"health"},
		prepare: prepareMPIOperator,
	}
}

// prepareMPIOperator creates the namespace of the lease, and the CRD, without which the operator
// exits.
func prepareMPIOperator(ctx context.Context, s *setup) ([]part, error) {
	if err := s.api.create(ctx, "/api/v1/namespaces", named(mpiOperatorNamespace)); err != nil {
		return nil, err
	}
	built := s.config.Built[operators[mpiOperator].component.Name]
	if err := s.installCRDs(ctx, []string{filepath.Join(built, "crds", mpiOperatorCRD)}); err != nil {
		return nil, err
	}
	probes := []probe{mpiProbe()}
	if err := s.submit(ctx, probes); err != nil {
		return nil, err
	}
	return []part{{
		name:  mpiOperator,
		rank:  rankOperator,
		ready: s.actsOn(probes),
		grace: defaultGrace,
		spec: process.Spec{
			Name: mpiOperator,
			Path: filepath.Join(built, mpiOperator),
			Args: []string{
				"--lock-namespace=" + mpiOperatorNamespace,
				"--monitoring-port=0",
				"--kube-api-qps=" + clientQPS,
				"--kube-api-burst=" + clientBurst,
				// The rate limit of its queue per second. The default is 10.
				"--controller-queue-rate-limit=" + clientQPS,
				"--controller-queue-burst=" + clientBurst,
				"--threadiness=8",
			},
			Env: s.environment(
				"KUBECONFIG="+s.credentials.kubeconfig(mpiOperator),
				"HEALTH_PORT="+strconv.Itoa(s.ports[mpiOperator+"-health"]),
			),
			Dir: string(s.folder),
			Log: s.folder.Log(mpiOperator),
		},
	}}, nil
}

func mpiProbe() probe {
	replicas := object{
		"replicas": 1,
		"template": object{"spec": object{"containers": []object{{"name": "mpi", "image": "none"}}}},
	}
	return probe{
		path: "/apis/kubeflow.org/v2beta1/namespaces/" + mpiOperatorNamespace + "/mpijobs",
		job: object{
			"apiVersion": "kubeflow.org/v2beta1",
			"kind":       "MPIJob",
			"metadata":   object{"name": readinessJob},
			"spec": object{
				"runPolicy":       object{"suspend": true},
				"mpiReplicaSpecs": object{"Launcher": replicas, "Worker": replicas},
			},
		},
	}
}
