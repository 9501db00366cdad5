// Package arrival keeps the order of arrival between job-extensions, which creates the
// units of jobs, and the controller, which gives free quota to the first unit that it is
// shown. The units of a namespace are created side by side, so they appear in any order.
//
// The protocol:
//   - Sender, in job-extensions. The creation of units begins in the order in which their
//     jobs came up, and waits for no other. A unit whose creation begins while the creation
//     of others is under way names the last of these in the annotation kube-queue/after.
//   - Receiver, in the controller. A new unit that names another one is held until that
//     one was shown, for Patience at most, since the other's creation may have failed.
//
// Invariant: units of one namespace and kind are shown in the order in which their
// creation began, unless a creation fails or takes longer than Patience.
//
// The receiver's wait is the only one. It cannot be dropped: a unit that appears first
// does not tell by itself whether an earlier one is still to come, and to wait without
// knowing would delay every job that comes alone. So the annotation cannot be dropped
// either: the two programs share nothing but the units.
//
// Either half may be older than the other. A receiver that does not know the annotation
// shows units as they appear, and units that name none are never held: at worst the order
// is lost, and nothing waits longer than Patience.
package arrival
