// Package framework is the contract between the kinds of job and the program that
// queues them. A kind's package implements Adapter, and imports nothing else of the
// framework, except adaptertest in its tests.
//
// An adapter is pure: it reads a job and returns what it finds. It has no client, no
// clock, no cache and no queue, and starts no goroutine.
//
// Terms. A held job is suspended and waits in the queue. It has a mark if its owner
// opted in: the annotation, or for some kinds the suspend field itself. To release a
// job means to clear mark and suspend field in one patch. An attempt is one release;
// the unit counts them.
//
// The packages below use the contract:
//   - decision decides what to do about one job, and is as pure as the adapters.
//   - reconciler executes the decision: clients, caches, queues.
//   - adaptertest tests an adapter with YAML files and with damaged objects.
package framework
