// Package model replays the writes of an audit log and reconstructs the state of the cluster at
// each write: jobs, units, pods, quotas, and which job held which quota. Package checks uses it to
// check the laws.
//
// Terms. A write is a log entry of a request that changes an object, successful or not. A row
// describes one kind of job to the checker. A claim is quota that is really in use. It opens when a
// unit gets a phase that holds quota or when its job is released, whichever is first. It closes
// when the job has ended, was deleted, or is suspended with its unit requeued. A claim counts at
// the group of its namespace in the tree in force, not in the tree at the time of admission. If the
// tree has no group for it any more, it counts at the nearest remaining ancestor of the group that
// admitted it.
//
// With a quota tree, a job is charged, resource by resource, the greater of its claim and of what its
// pods request. When the claim has closed, its pods are charged until they are gone; see Charge.
//
// With ResourceQuotas, a claim counts in its namespace the requests of its unit's pod sets, or the
// requests of the job's pods if they are larger. Pods that belong to no claim count too. A job
// starts with the number of pods in its unit's pod sets.
//
// Order. All objects of a cluster get their resourceVersion from one sequence, so writes are sorted
// by the version that they returned, not by line. Some writes returned no version of their own: most
// deletes, writes that changed nothing, and Events, which may be stored elsewhere. They get the earliest
// possible place: after the last write of their object, and after all writes that were complete when
// their request arrived. The latest possible place would be their
// own completion. Under load that is well after others saw the effect, so the checker would report
// reused quota as an excess. The cost is that the checker detects nothing in the few milliseconds
// of such a request. The removal of a pod is at most as late as the first write that was requested
// after it: the API server stores that the grace period is over, from then on nobody counts the pod,
// and the log contains only the version of the removal that follows.
//
// A write that was aborted without a response, for example because its program was killed, may
// still have been stored. The next write of its object shows whether it was. The aborted write gets
// the place of the time when it was aborted.
package model
