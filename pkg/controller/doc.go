// Package controller is the shell around the core: it turns what informers see
// into events, carries out the core's plans, and publishes what the core counts.
//
// Data flows one way. Informers and write outcomes go into the inbox; one
// goroutine, the loop, takes them out, asks the core for a plan and hands it to
// the applier; the applier is the only writer of QueueUnits here, and reports the
// outcome of each write through the inbox. A publisher of its own writes the
// status of Queues, and has the quota's source show how much is used, at most once
// per object and PublishInterval.
//
// Which quota backend decides is nothing to this package: a backend.Source watches
// what the quota is written in, and what it saw goes through the inbox like the rest.
//
// Nothing is kept but in API objects: a restart rebuilds the core from what the
// informers list, and decides nothing before all of it is in.
package controller
