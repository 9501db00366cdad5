// Package reconciler turns jobs of any kind into QueueUnits and releases them.
//
// There is one reconciler for all kinds. What is different about a kind is in
// its framework.Adapter, which is pure.
//
// How a job moves is decided by decision.Decide. All here carries out what it
// decided.
//
// Invariants:
//   - Each patch carries the resourceVersion and UID of the object that the
//     decision was made on. A conflict is answered by waiting for the newer
//     object, never by trying again.
//   - Nothing is decided on an object older than our own last write to it.
//   - No object of a user, job or unit, can stop a kind: one that cannot be
//     decoded is known by its metadata only and left alone.
package reconciler
