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
	// sparkAccount is the ServiceAccount of drivers, by the name that the operator's
	// chart gives it. It is made in the operator's namespace only.
	sparkAccount = "spark-operator-spark"
)

// sparkCRDs are the kinds it watches; it does not start unless all are served.
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

// prepareSparkOperator makes what the operator's chart would. Its webhook is not
// run: what only the webhook puts into pods, among it side cars and spec.driver.gpu,
// is not there, and applications are not defaulted.
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
				// All of them.
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
				// They set the address of the API server for spark-submit.
				"KUBERNETES_SERVICE_HOST=127.0.0.1",
				fmt.Sprintf("KUBERNETES_SERVICE_PORT=%d", s.ports[portAPIServer]),
			),
			Dir: string(s.folder),
			Log: s.folder.Log(sparkOperator),
		},
	}}, nil
}

// installSparkSubmit makes the command that the operator calls. It has the
// operator's environment, and so is the same user.
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
