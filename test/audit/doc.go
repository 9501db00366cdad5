// Package audit reads the audit log of an API server and checks that the recorded writes
// conform to the laws of kube-queue. It uses only the log and shares no code with the
// programs that it checks, so that it does not repeat their mistakes.
//
// The log must contain every write at level RequestResponse, stage ResponseComplete. Reads
// are not needed.
//
// Package log reads entries, package facts what each write says, and package state remembers the
// last object of each UID. Package checks has the laws, which sum those objects. Package budget
// counts writes. This package combines them for tests and for the command audit-check.
//
// Invariants. A write that was rejected or was a dry run changes nothing. Cases that the log
// does not show completely are not checked, and the report counts them.
package audit
