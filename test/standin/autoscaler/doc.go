// Package autoscaler is a stand-in for the support of ProvisioningRequests in the cluster
// autoscaler, for tests with a real API server. The test decides how each request is answered. Nodes
// are simulated: kwok plays their kubelets, and the real scheduler places pods on them. test/e2e/provisioning
// and test/e2e/gangs show that kube-queue and the scheduler react to each answer.
//
// Terms. An Answer is the state that the stand-in drives all requests to. A Pool is capacity that several requests
// share. The nodes of a request are the nodes that the stand-in has added for it.
//
//	scaler := autoscaler.ForTest(t, cluster)
//	scaler.Answer(autoscaler.QuotaExceeded("no GPUs left"))
//	...
//	scaler.Answer(autoscaler.Provision())
//
// Invariants:
//   - A request goes through the states of the real autoscaler in their order: Accepted, then perhaps
//     Provisioned=False, then Provisioned=True or Failed, then BookingExpired or CapacityRevoked. Each step is a
//     separate write to the status subresource, guarded by the resourceVersion.
//   - Failed=True and Provisioned=True are never taken back.
//   - Provisioned becomes True only when all nodes of the request are ready and have no taint.
//   - The nodes of a request have room for all its pods in any order and on any of these nodes: each
//     node fits the largest pod of a set with the same node selector.
//   - As in a real cluster, nodes of a deleted request are removed when their pods have ended.
//     Revoked nodes are removed at once, and their pods fail.
//
// Nothing reserves the nodes. Pods of others that match take them, as with the real autoscaler. Use
// node selectors or different resources to separate gangs.
package autoscaler
