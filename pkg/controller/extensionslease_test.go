package controller

import (
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"

	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/test/require"
)

func TestNoJobOfAKindThatTheLeaseOfJobExtensionsTurnsOffIsAdmitted(t *testing.T) {
	labels := make(chan map[string]string, 10)
	lease := func(version, mark string) map[string]any {
		return map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
			"metadata": map[string]any{"namespace": "kube-queue", "name": "job-extensions", "uid": "u", "resourceVersion": version, "labels": map[string]any{"kinds.kube-queue/job": mark}}}
	}
	config := metadataOf(t, "/apis/coordination.k8s.io/v1/namespaces/kube-queue/leases", "metadata.name=job-extensions",
		[]any{map[string]any{"type": "DELETED", "object": lease("8", "off")}, map[string]any{"type": "ADDED", "object": lease("9", "on")}}, lease("7", "off"))
	synced, err := watchExtensionsLease(t.Context(), config, "kube-queue", func(all map[string]string) { labels <- all })
	require.NoError(t, err)
	var off map[string]string
	select {
	case off = <-labels:
	case <-time.After(30 * time.Second):
		t.Fatal("nothing is known of the Lease")
	}
	if !cache.WaitForCacheSync(t.Context().Done(), synced) {
		t.Fatal("the controller would wait for ever")
	}
	// Until the Lease exists again, the kind does not count as on.
	if on := <-labels; on["kinds.kube-queue/job"] != "on" {
		t.Errorf("with the Lease deleted, its labels are %v", on)
	}
	d := decide(t, tree.Options{})
	d.expect(d.after(0, quotaListed, leaseSeen(off), d.tree(goodRoot), unitWith("off", "batch/v1"), unitWith("by-hand", "example.com/v1")),
		map[string]string{"a/by-hand": "Dequeue "})
	d.expect(d.after(time.Second/2, leaseSeen(nil)), map[string]string{"a/off": "Dequeue "})
}
