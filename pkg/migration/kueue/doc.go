// Package kueue converts the objects of Kueue into those of kube-queue: ClusterQueues and Cohorts into one
// ElasticQuotaTree and the settings of its Queues, WorkloadPriorityClasses into PriorityClasses, AdmissionChecks and
// ProvisioningRequestConfigs into those of kube-queue, and the manifests of jobs. It reads the versions v1beta1 and
// v1beta2.
//
// Terms. A pair is a resource of a flavor; Kueue has quota for pairs, and kube-queue for resources. The reach of a
// node is the most that can be in use at and below it while all others are idle.
//
// Invariants. The min of a leaf is the nominal quota of its ClusterQueue, and its max is the reach, summed over the
// flavors, because kube-queue does not choose nodes. The max of a Cohort is its reach. So the tree is always valid,
// and no queue has less than before.
package kueue
