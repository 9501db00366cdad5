package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"kube-queue.dev/kube-queue/extensions/framework"
)

// operator runs the jobs of an API version. The tests run it at the version of its module in
// the component of the local cluster.
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

// operatorOf returns the operator of a kind.
func operatorOf(kind framework.Kind) (operator, error) {
	o, known := operators[kind.GroupVersion().String()]
	if !known {
		return o, fmt.Errorf("no operator of %s is listed in hack/kinds/operators.go", kind.GroupVersion())
	}
	return o, nil
}

// tested returns the version of the operator that the tests run.
func (o operator) tested(root string) (string, error) {
	file := filepath.Join(root, "test/localcluster/components", o.component, "go.mod")
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(words) > 1 && words[0] == o.module {
			return words[1], nil
		}
	}
	return "", fmt.Errorf("%s does not require %s", file, o.module)
}

// operatorTable lists the kinds by their operators, with the versions that the tests run.
func operatorTable(root string, adapters []framework.Adapter) (string, error) {
	var rows [][]string
	for _, adapter := range adapters {
		kind := adapter.Kind()
		o, err := operatorOf(kind)
		if err != nil {
			return "", err
		}
		version, err := o.tested(root)
		if err != nil {
			return "", err
		}
		name := pageLink("docs/tasks/", kind)
		if several(adapters, kind) {
			name += " " + kind.Version
		}
		row := []string{name, o.name + " " + version, "no"}
		if byDefault(kind) {
			row[2] = "yes"
		}
		if last := len(rows) - 1; last >= 0 && rows[last][1] == row[1] && rows[last][2] == row[2] {
			rows[last][0] += ", " + name
		} else {
			rows = append(rows, row)
		}
	}
	return table([]string{"kind", "tested with", "enabled by default"}, rows), nil
}
