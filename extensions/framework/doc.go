// Package framework turns jobs of any kind into QueueUnits and releases them.
//
// There is one reconciler for all kinds. What is different about a kind is in
// its Adapter, which is pure: it reads a job and says what it sees. An adapter
// has no client, no cache and no queue.
//
// Words. A job is held when it is suspended and waits for its turn. It carries a
// mark when its owner asked for that (an annotation, or for some kinds the
// suspend field itself). To release a job is to clear mark and suspend field in
// one patch. An attempt is one release; the unit counts them.
//
// How a job moves is decided by Decide, a pure function of the job, its unit and
// the time; see there for the rules. All else carries out what it decided.
//
// Invariants:
//   - Each patch carries the resourceVersion and UID of the object that the
//     decision was made on. A conflict is answered by waiting for the newer
//     object, never by trying again.
//   - Nothing is decided on an object older than our own last write to it.
//   - A job is released only when its unit is Dequeued, once for each attempt:
//     annotation kube-queue/released on the job, written by the releasing patch
//     itself, says which attempt that was.
//   - Jobs that are not ours are not touched: see ours.
//   - No object of a user, job or unit, can stop a kind: one that cannot be
//     decoded is known by its metadata only and left alone.
package framework
