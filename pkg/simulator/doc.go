// Package simulator runs the production core in virtual time: it plays a trace of
// jobs against a quota tree and reports how long each had to wait.
//
// Words. A job is submitted at an instant, waits until the core releases it, runs for
// as long as its trace says and ends. Instants are counted from the start of the
// trace. A scenario is a trace with the tree and the policies it is played against;
// an outcome is what became of one job.
//
// What is simulated is the API server and the cluster around the core: writes land at
// once, a released job runs at once, nobody changes a tree. There is no node: quota is
// the only thing that a job waits for. The core itself is that of
// kube-queue-controller, unchanged.
//
// Around it are packages for what a user brings and gets: trace reads jobs, quotatree
// reads and proposes trees, report makes figures of a result and plot draws them.
//
// Invariants. The same scenario gives the same outcomes. Virtual time never goes back,
// and the core is called whenever it asked to be.
package simulator
