// Package reconciler turns jobs of any kind into QueueUnits and releases them.
//
// There is one reconciler for all kinds. What differs between kinds is in the
// framework.Adapter of the kind, which is pure.
//
// decision.Decide decides the next step of a job. This package executes it.
//
// Invariants:
//   - Each patch carries the resourceVersion and UID of the object that the decision is
//     based on. After a conflict the reconciler waits for the newer object instead of
//     retrying.
//   - Whatever holds a job, an event on the job says within 5 s what it is and who can change it:
//     owners often can read nothing else. test/e2e/silence has a case for each; a new one needs a case.
//   - No decision is based on an object older than our own last write to it.
//   - No object of a user, job or unit, can stop a kind: of an object that cannot be
//     decoded only the metadata is known, and it is not changed.
package reconciler
