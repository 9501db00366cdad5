// Package reconciler turns jobs of any kind into QueueUnits and releases them.
//
// All kinds share one implementation. What differs between them is in their framework.Adapter, which is pure.
//
// decision.Decide decides the next step of a job. This package executes it.
//
// Invariants:
//   - Each patch carries the resourceVersion and UID of the object that the decision is
//     based on. After a conflict, the reconciler waits for the newer object instead of
//     retrying.
//   - If anything holds a job, an event on the job says within 5 s what it is and who can change it:
//     owners often cannot read anything else. test/e2e/silence has a case for each; a new one needs a case.
//   - No decision is based on an object older than our own last write to it.
//   - No job or unit can stop its whole kind: if an object cannot be decoded, only its metadata
//     is known, and it is not changed.
package reconciler
