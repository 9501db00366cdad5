// Package loadgen makes the units of a scenario and plays the jobs that they stand for,
// as job-extensions would: it creates a unit when its time has come, sees it released
// and writes its end a run time later.
//
// Words. A Client sends, by package wire, the few requests that this takes, as one user. A Stage is one
// playing of a scenario, and holds what became of each unit.
//
// The machine is that of what is measured, so the package is cheap: bodies are put
// together from pieces, answers are read and dropped, of what the watch sends only some
// fields are looked at, and one goroutine has all clocks. It writes what
// job-extensions would write, and no more.
//
// Invariant: a unit is created at its time whether or not others are late (an open
// loop); one that could not be is created at once, and how late it was is kept.
package loadgen
