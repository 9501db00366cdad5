package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"kube-queue.dev/kube-queue/test/localcluster/internal/build"
	"kube-queue.dev/kube-queue/test/localcluster/internal/process"
	"kube-queue.dev/kube-queue/test/localcluster/internal/standin"
)

const (
	sparkOperator       = "spark-operator"
	sparkOperatorModule = "github.com/kubeflow/spark-operator/v2"
	// sparkAccount is the ServiceAccount of drivers, with the name in the operator's chart. It
	// exists only in the operator's namespace.
	sparkAccount = "spark-operator-spark"
)

// sparkCRDs are the CRDs of the kinds that the operator watches. It does not start unless all are
// served.
var sparkCRDs = []string{
	"sparkoperator.k8s.io_sparkapplications.yaml",
	"sparkoperator.k8s.io_scheduledsparkapplications.yaml",
	"sparkoperator.k8s.io_sparkconnects.yaml",
}

func init() {
	component := build.Component{
		Name:    "sparkoperator",
		Package: sparkOperatorModule + "/cmd/operator",
		Binary:  sparkOperator,
		LDFlags: "-s -w",
		Files:   []build.ModuleFiles{{Module: sparkOperatorModule, Into: "crds"}},
	}
	for _, file := range sparkCRDs {
		component.Files[0].Paths = append(component.Files[0].Paths, path.Join("config/crd/bases", file))
	}
	operators[sparkOperator] = operator{
		component:  component,
		companions: []string{standin.SparkDriver},
		prepare:    prepareSparkOperator,
	}
}

// prepareSparkOperator creates the objects of the operator's chart. The webhook does not run, so
// that pods lack what only the webhook adds, such as sidecars and spec.driver.gpu, and applications
// have no defaults.
func prepareSparkOperator(ctx context.Context, s *setup) ([]part, error) {
	home := s.folder.Path("tmp", sparkOperator)
	if err := installSparkSubmit(filepath.Join(home, "bin")); err != nil {
		return nil, err
	}
	built := s.config.Built[operators[sparkOperator].component.Name]
	var definitions []string
	for _, file := range sparkCRDs {
		definitions = append(definitions, filepath.Join(built, "crds", file))
	}
	if err := s.installCRDs(ctx, definitions); err != nil {
		return nil, err
	}
	if err := s.api.create(ctx, "/api/v1/namespaces", named(sparkOperator)); err != nil {
		return nil, err
	}
	if err := s.api.create(ctx, "/api/v1/namespaces/"+sparkOperator+"/serviceaccounts", named(sparkAccount)); err != nil {
		return nil, err
	}
	if err := s.submit(ctx, []probe{sparkProbe()}); err != nil {
		return nil, err
	}
	return []part{s.standIn(standin.SparkDriver), {
		name:  sparkOperator,
		rank:  rankOperator,
		ready: s.sparkOperatorReady,
		grace: defaultGrace,
		spec: process.Spec{
			Name: sparkOperator,
			Path: filepath.Join(built, sparkOperator),
			Args: []string{
				"controller", "start",
				// All namespaces.
				"--namespaces=",
				"--enable-ui-service=false",
				"--health-probe-bind-address=0",
				"--metrics-bind-address=0",
				"--kube-api-qps=" + clientQPS,
				"--kube-api-burst=" + clientBurst,
				"--workqueue-ratelimiter-bucket-qps=" + clientQPS,
				"--workqueue-ratelimiter-bucket-size=" + clientBurst,
				"--zap-log-level=info",
			},
			Env: s.environment(
				"KUBECONFIG="+s.credentials.kubeconfig(sparkOperator),
				"SPARK_HOME="+home,
				// The address of the API server for spark-submit.
				"KUBERNETES_SERVICE_HOST=127.0.0.1",
				fmt.Sprintf("KUBERNETES_SERVICE_PORT=%d", s.ports[portAPIServer]),
			),
			Dir: string(s.folder),
			Log: s.folder.Log(sparkOperator),
		},
	}}, nil
}

// installSparkSubmit creates the command that the operator calls. The command inherits the
// operator's environment, and with it the user.
func installSparkSubmit(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	script := fmt.Sprintf("#!/bin/sh\nexec %s %s %s \"$@\"\n", ourselves(), standin.Command, standin.SparkSubmit)
	return os.WriteFile(filepath.Join(dir, "spark-submit"), []byte(script), 0o755)
}

func sparkProbe() probe {
	return probe{
		path: "/apis/sparkoperator.k8s.io/v1beta2/namespaces/" + sparkOperator + "/sparkapplications",
		job: object{
			"apiVersion": "sparkoperator.k8s.io/v1beta2",
			"kind":       "SparkApplication",
			"metadata":   object{"name": readinessJob},
			"spec": object{
				"suspend":             true,
				"type":                "Scala",
				"mode":                "cluster",
				"sparkVersion":        "3.5.0",
				"image":               "none",
				"mainApplicationFile": "local:///none.jar",
				"driver":              object{},
				"executor":            object{},
			},
		},
	}
}

// sparkOperatorReady passes when the operator has suspended an application.
func (s *setup) sparkOperatorReady(ctx context.Context) error {
	var found struct {
		Status struct{ ApplicationState struct{ State string } }
	}
	path := sparkProbe().path + "/" + readinessJob
	if err := s.api.get(ctx, path, &found); err != nil {
		return err
	}
	if found.Status.ApplicationState.State != "SUSPENDED" {
		return errors.New("a suspended SparkApplication is not handled yet")
	}
	return s.api.delete(ctx, path)
}
