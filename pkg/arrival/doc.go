// Package arrival preserves the order of jobs between job-extensions, which creates their units,
// and the controller, which gives free quota to the first unit that it observes. The units of a
// namespace are created concurrently, so they appear in any order.
//
// The protocol:
//   - Sender, in job-extensions. The creation of units begins in the order of their jobs and does
//     not wait for the creation of other units. A unit whose creation begins while others are being
//     created names the last of these in the annotation kube-queue/after.
//   - Receiver, in the controller. A new unit that names another unit is delayed until the other
//     one was delivered, but at most for Patience, because the creation of the other one may have
//     failed.
//
// Invariant: units of the same namespace and kind are delivered in the order in which their
// creation began, unless a creation fails or takes longer than Patience.
//
// Only the receiver waits. It must wait, because the first unit to appear does not show whether an earlier one will
// follow. It must know when to wait, because otherwise it would delay every job that arrives alone. The two programs
// share only the units, so the annotation tells it when.
//
// The two programs may have different versions. A receiver that does not know the annotation
// delivers units as they appear, and units without the annotation are never delayed. At worst the
// order is lost, and no unit waits longer than Patience.
package arrival
