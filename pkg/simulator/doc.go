// Package simulator runs the scheduling core in virtual time: it replays a trace of jobs
// against a quota tree and reports how long each job waited.
//
// Terms. A job is submitted at an instant, waits until the core admits it, runs for the
// duration in the trace, and ends. A job that is evicted for another one stops, waits again
// with its first submission time, and starts again: from zero, or where it stopped. Instants
// are relative to the start of the trace. A scenario is a trace with a quota tree and
// policies; an outcome is the result of one job.
//
// The API server and the cluster are simulated: writes succeed immediately, a released job runs immediately, and the
// tree never changes. There are no nodes: jobs wait only for quota. The core is the one of kube-queue-controller,
// unchanged.
//
// Other packages handle input and output: trace reads jobs, quotatree reads and proposes trees, report computes
// statistics of a result, and plot draws them.
//
// Invariants. The same scenario gives the same outcomes. Virtual time never goes back. The core is called whenever it
// requests a call while a job runs, stops, or will be submitted or queued again. After that, calls could not change
// anything.
package simulator
