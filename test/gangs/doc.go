// Package gangs checks that no gang is partly running: that capacity for all its pods exists before
// the first one starts. It follows the pods and nodes of a real cluster.
//
// Terms. A Gang is a set of pods that make progress only together. An attempt of a gang begins when its first pod is
// seen. It is complete when as many pods as the gang needs have been bound to nodes, not necessarily at the same
// time. It ends when all its pods are gone or have ended, and it is complete or one of them was deleted. After an
// eviction, the job has another attempt. A node is usable when it is ready and has no taint.
//
// An attempt is never partly running if it breaks none of these rules:
//
//   - Unschedulable: while a pod of the attempt is running, the scheduler finds a node for all others. The scheduler
//     may be slow: a pod that it has not tried yet breaks no rule. A report from before the first binding may be
//     outdated: it stays in the status until the pod is bound, and a scheduler that places all pods or none still
//     binds them one by one. It counts only if the pod gets no node or LateCapacity is broken.
//   - LateCapacity: until the attempt is complete, each pod is bound to a node that was usable before the first
//     binding. This also finds capacity that arrives after the start but before the scheduler notices that it is
//     missing. Before the first binding, the nodes also had room for the requests of all pods. The pods may end up
//     elsewhere: others may take this room while other room becomes free.
//   - Incomplete: an attempt with a bound pod is complete when it ends or when Check is called. Call Check when the
//     gang should be running.
//
// No rule depends on the speed of the programs. The resourceVersions decide whether a node or a pod was first,
// because two watches have no common order. Versions of different resources are comparable because the clusters of
// tests have one etcd.
//
//	gangs.Follow(t, client, gangs.Gang{Name: "train", Namespace: "research", Selector: "job-name=train", Pods: 4})
package gangs
