package jobextensions

import (
	"testing"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/require"
)

// The cluster of this test has no CRD of TFJob at first. Served kinds must work without it, and TFJobs once it is
// installed.
func TestAKindStartsWhenItsCRDIsInstalledLater(t *testing.T) {
	t.Parallel()
	c := clustertest.ForTest(t, clustertest.Options{Nodes: 1})
	stop := startFor(t, c, "tfjob,job")
	defer func() { stop() }()
	begin(t, c, batchJob, annotated).enqueued()

	require.NoError(t, c.InstallCRDs(t.Context(), "training-operator"))
	require.NoError(t, c.Install(t.Context()))
	begin(t, c, tfJob, annotated).enqueued()

	// An object that the CRD accepts but Go cannot decode must not affect other jobs. It would stop
	// the training operator, which does not run in this cluster.
	begin(t, c, tfJob, annotated, `{spec: {tfReplicaSpecs: {Worker: {template: {spec: {containers: [
		{name: tensorflow, image: main, resources: {requests: {cpu: "1e1.5"}}}]}}}}}}`)
	begin(t, c, tfJob, annotated).enqueued()
	stop()
	stop = startFor(t, c, "tfjob,job")
	begin(t, c, tfJob, annotated).enqueued()
}
