package jobextensions

import (
	"testing"

	"kube-queue.dev/kube-queue/extensions/framework/requests"
	"kube-queue.dev/kube-queue/test/clustertest"
)

// The cluster of this test has no CRD of TFJob at first: kinds that are served
// must work meanwhile, and TFJobs once they are.
func TestAKindWhoseCRDComesLaterStartsByItselfAndNoObjectStopsIt(t *testing.T) {
	t.Parallel()
	c := clustertest.ForTest(t, clustertest.Options{Nodes: 1})
	stop, err := startExtensions(c, "tfjob,job", requests.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { stop() }()
	begin(t, c, batchJob, annotated).enqueued()

	if err := c.InstallCRDs(t.Context(), "training-operator"); err != nil {
		t.Fatal(err)
	}
	if err := c.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	begin(t, c, tfJob, annotated).enqueued()

	// What Go cannot decode though the CRD's schema lets it through stops nobody
	// else here. It would stop the training operator, so it is tried where none is.
	begin(t, c, tfJob, annotated, `{spec: {tfReplicaSpecs: {Worker: {template: {spec: {containers: [
		{name: tensorflow, image: main, resources: {requests: {cpu: "1e1.5"}}}]}}}}}}`)
	begin(t, c, tfJob, annotated).enqueued()
	stop()
	if stop, err = startExtensions(c, "tfjob,job", requests.Rules{}); err != nil {
		t.Fatal(err)
	}
	begin(t, c, tfJob, annotated).enqueued()
}
