// Package loadgen creates the units of a scenario and simulates their jobs, as job-extensions
// would: it creates a unit at its time, observes its release and writes its end after its run time.
//
// Terms. A Client sends the requests of one user with package wire. A Run is one run of a scenario
// and contains the outcome of each unit.
//
// The load generator shares the machine with the programs that it measures, so it is cheap: request
// bodies are assembled from fragments, responses are discarded, only some fields of watch events
// are parsed, and one goroutine runs all timers. It sends the same writes as job-extensions, and no
// others.
//
// Invariant: a unit is created at its time even if others are late (an open loop). A late unit is
// created immediately, and its delay is recorded.
package loadgen
