package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/hack/internal/generator"
)

// operator runs the jobs of an API version. The tests run the version of its module that its component of the local
// cluster requires.
type operator struct {
	name, component, module string
}

var operators = map[string]operator{
	"kubeflow.org/v1":               {"training-operator", "trainingoperator", "github.com/kubeflow/training-operator"},
	"kubeflow.org/v2beta1":          {"mpi-operator", "mpioperator", "github.com/kubeflow/mpi-operator"},
	"sparkoperator.k8s.io/v1beta2":  {"spark-operator", "sparkoperator", "github.com/kubeflow/spark-operator/v2"},
	"batch/v1":                      {"Kubernetes", "controlplane", "k8s.io/kubernetes"},
	"jobset.x-k8s.io/v1alpha2":      {"JobSet", "jobset", "sigs.k8s.io/jobset"},
	"trainer.kubeflow.org/v1alpha1": {"Kubeflow Trainer", "trainer", "github.com/kubeflow/trainer/v2"},
	"ray.io/v1":                     {"KubeRay", "kuberay", "github.com/ray-project/kuberay/ray-operator"},
	"argoproj.io/v1alpha1":          {"Argo Workflows", "argoworkflows", "github.com/argoproj/argo-workflows/v3"},
}

// tested returns the version of the operator that the tests run.
func (o operator) tested(root string) (string, error) {
	file := filepath.Join(root, "test/localcluster/components", o.component, "go.mod")
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	required := regexp.MustCompile(`(?m)^\s*(?:require )?` + regexp.QuoteMeta(o.module) + ` (\S+)`).FindSubmatch(text)
	if required == nil {
		return "", fmt.Errorf("%s does not require %s", file, o.module)
	}
	return string(required[1]), nil
}

// operatorTable lists the kinds by their operators, with the versions that the tests run.
func operatorTable(root string, kinds []framework.Kind) (string, error) {
	var rows [][]string
	for _, kind := range kinds {
		o, known := operators[kind.GroupVersion().String()]
		if !known {
			return "", fmt.Errorf("no operator of %s is listed in hack/kinds/operators.go", kind.GroupVersion())
		}
		version, err := o.tested(root)
		if err != nil {
			return "", err
		}
		name := strings.Replace(title(kinds, kind), kind.Kind, pageLink("docs/tasks/", kind), 1)
		rows = append(rows, []string{name, o.name + " " + version})
	}
	return generator.Table([]string{"kind", "tested with"}, merged(rows)), nil
}
