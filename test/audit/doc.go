// Package audit reads the audit log of an API server and reports whether what it
// holds is what a job queue may do. It judges by the log alone: it shares no
// code with the programs it judges, so that a misunderstanding of theirs is not
// repeated here.
//
// The log must be written at level RequestResponse, stage ResponseComplete, for
// every write; reads may be left out.
//
// The work is parted: package log reads entries, package model follows the writes
// and knows what there is at each moment, package checks judges, law by law, and
// package use measures how well quota was used. This package puts them together
// for tests and for the command audit-check.
//
// Invariants. A write that was refused or was a dry run changes nothing. What
// the log does not show is not judged, and the report says how often.
package audit
