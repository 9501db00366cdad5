// Package decision decides what to do about one job: it is the pure middle of
// job-extensions. It knows no client, no clock and no goroutine; the time is an
// argument, and what is in the cluster stands behind the interface Cluster.
//
// How a job moves is decided by Decide, a pure function of the job, its unit and
// the time; see there for the rules. What the unit of a job should read is a Want.
// Package reconciler carries out what is decided.
//
// Invariants:
//   - A job is released only when its unit is Dequeued, once for each attempt:
//     annotation kube-queue/released on the job, written by the releasing patch
//     itself, says which attempt that was.
//   - Jobs that are not ours are not touched: see Foreign.
package decision
