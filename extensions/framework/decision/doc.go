// Package decision decides what to do about one job: it is the pure core of
// job-extensions. It has no client, no clock and no goroutine; the time is an
// argument, and objects of the cluster are read through the interface Cluster.
//
// Decide is a pure function of the job, its unit and the time; its comments state the
// rules. Desired is the unit spec that matches the job. Package reconciler executes
// the decisions.
//
// Invariants:
//   - A job is released only when its unit is Dequeued, once for each attempt: annotation
//     kube-queue/released on the job records the attempt. The release patch itself writes it.
//   - Jobs that are not ours are not changed: see Foreign.
//   - A unit becomes inactive before it shows that its job is invalid or has run for too long. Otherwise the controller
//     could admit it again between the two writes.
//   - A job is not suspended if its operator would then end it as failed. It keeps its quota until it
//     ends.
//   - The release writes the annotations of admission checks. So pods have them from their creation, and they name the
//     request of this attempt. SparkApplications get none: any other change of their spec starts a new run.
package decision
