package frameworks

import "testing"

// framework is an operator, the kinds of job that it runs, and users' manifests of
// those.
type framework struct {
	operator  string
	specimens []specimen
	rows      []row
}

func TestFrameworks(t *testing.T) {
	tell(t,
		framework{operator: "training-operator", specimens: []specimen{tfJob, pyTorchJob, mpiJobV1}},
		framework{operator: "spark-operator", specimens: []specimen{sparkApplication}, rows: []row{sparkPi}},
		framework{operator: "kuberay", specimens: []specimen{rayJob, rayCluster}, rows: []row{raySample}},
		framework{operator: "jobset", specimens: []specimen{jobSet, batchJob, cronJob}},
		framework{operator: "argo-workflows", specimens: []specimen{workflow}, rows: []row{sizedWorkflow, unsizedWorkflow}},
	)
}

// TestMPIOperator has a cluster of its own: its MPIJob and that of
// training-operator are one definition.
func TestMPIOperator(t *testing.T) {
	tell(t, framework{operator: "mpi-operator", specimens: []specimen{mpiJobV2beta1}})
}
