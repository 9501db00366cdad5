// Package framework is the contract between the kinds of job and the program that
// queues them. A kind's package implements Adapter, and imports nothing else of the
// framework, except adaptertest in its tests.
//
// An adapter is pure: it reads a job and says what it sees. It has no client, no
// clock, no cache and no queue, and starts no goroutine.
//
// Words. A job is held when it is suspended and waits for its turn. It carries a
// mark when its owner asked for that (an annotation, or for some kinds the
// suspend field itself). To release a job is to clear mark and suspend field in
// one patch. An attempt is one release; the unit counts them.
//
// Below it are the rooms of those who use the contract:
//   - decision decides what to do about one job, and is as pure as the adapters.
//   - reconciler carries that out: clients, caches, queues.
//   - requests says what pods will really ask for.
//   - adaptertest tests an adapter on YAML files and on damaged objects.
package framework
