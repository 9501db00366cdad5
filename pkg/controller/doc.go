// Package controller is the shell around the core. It converts observations of informers into events,
// carries out the plans of the core, and publishes its counts.
//
// Data flows in one direction. Informers and outcomes of writes go into the inbox. One goroutine, the loop, processes
// them, requests a plan from the core and passes it to the applier. The applier is the only writer of QueueUnits in
// this program and reports the outcome of each write through the inbox. The publisher writes the status of Queues, and
// lets the source of the quota write the usage, at most once per object and PublishInterval.
//
// This package does not depend on the quota backend. A backend.Source watches the objects that
// define the quota, and its observations go through the inbox as well.
//
// All state is in API objects. After a restart, the core is rebuilt from the lists of the informers. It makes no
// decision until all listed objects are processed.
package controller
