// Package gangs checks that no gang is partly running: that capacity for all its pods exists before
// the first one starts. It follows the pods and nodes of a real cluster.
//
// Terms. A Gang is a set of pods that make progress only together. An attempt of a gang begins when
// its first pod is seen. It is complete when as many pods as the gang has have been bound to nodes, not
// necessarily at one time. It ends when all its pods are gone or have ended, if it is complete or one
// of them was deleted; the job has another attempt after an eviction. A node is usable when it is ready
// and has no taint.
//
// An attempt is never partly running if it breaks none of these rules:
//
//   - Unschedulable: while a pod of the attempt is running, the scheduler reports of no other one that
//     it finds no node for it. The scheduler may take any time: a pod that it has not tried yet breaks
//     no rule. A report from before the first pod was bound stays in the status until the pod is bound,
//     and a scheduler that places all pods or none binds them one after another. It counts only if the
//     pod gets no node, or LateCapacity is broken.
//   - LateCapacity: until the attempt is complete, each pod is bound to a node that was usable before
//     the first pod was bound. So capacity that arrives after the start is found also if it arrives
//     before the scheduler notices that it is missing. And before the first pod was bound, the nodes had
//     room for the requests of all of them. Each pod may get other room: others may take this one, while
//     room becomes free elsewhere.
//   - Incomplete: an attempt of which a pod was bound is complete when the attempt ends or Check is
//     called. Call Check when the gang should run.
//
// No rule depends on how fast the programs are. Whether a node or a pod was first is decided by their
// resourceVersions, since two watches have no common order. Versions of different resources are
// comparable because the clusters of tests have one etcd.
//
//	gangs.Follow(t, client, gangs.Gang{Name: "train", Namespace: "research", Selector: "job-name=train", Pods: 4})
package gangs
