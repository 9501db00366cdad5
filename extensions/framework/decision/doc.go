// Package decision decides what to do about one job: it is the pure core of
// job-extensions. It has no client, no clock and no goroutine; the time is an
// argument, and objects of the cluster are read through the interface Cluster.
//
// Decide is a pure function of the job, its unit and the time; its comments state the
// rules. Desired is the unit spec that matches the job. Package reconciler executes
// the decisions.
//
// Invariants:
//   - A job is released only when its unit is Dequeued, once for each attempt:
//     annotation kube-queue/released on the job, written by the releasing patch
//     itself, records the attempt.
//   - Jobs that are not ours are not changed: see Foreign.
package decision
