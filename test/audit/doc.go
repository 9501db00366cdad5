// Package audit reads the audit log of an API server and checks that the recorded writes
// conform to the laws of kube-queue. It uses only the log. It shares the API types with the programs that it checks,
// but no code, so that it does not repeat their mistakes.
//
// The log must contain every write at level RequestResponse, stage ResponseComplete. Reads
// are not needed.
//
// Terms. A write is a log entry of a request that changes an object, successful or not. Its body has
// the facts that the laws need. The world has the last version of each object. A law compares each
// write with the world, mostly with sums over its objects. Its rules are the ways to violate it.
// A new law is one file and one row in the list of all laws.
//
// Invariants. A write that was rejected or was a dry run changes nothing. Cases that the log does not show completely
// are not checked, and the report counts them. A sum is never too large: it omits what the log leaves in doubt.
//
// Package log reads the entries. The command audit-check prints the report.
package audit
