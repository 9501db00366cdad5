package frameworks

import "testing"

func TestTrainingOperator(t *testing.T) {
	tell(t, site(t, "training-operator"), tfJob, pyTorchJob, mpiJobV1)
}

func TestMPIOperator(t *testing.T) { tell(t, site(t, "mpi-operator"), mpiJobV2beta1) }

func TestSparkOperator(t *testing.T) { tell(t, site(t, "spark-operator"), sparkApplication) }

func TestKubeRay(t *testing.T) { tell(t, site(t, "kuberay"), rayJob, rayCluster) }

func TestJobSet(t *testing.T) { tell(t, site(t, "jobset"), jobSet, batchJob) }

func TestArgoWorkflows(t *testing.T) { tell(t, site(t, "argo-workflows"), workflow) }
