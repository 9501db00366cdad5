// Package preemption chooses which units are evicted to make room for a waiting unit.
//
// Terms. The claimant is the waiting unit. A candidate is a unit that holds quota and can be evicted. A victim is a
// candidate that was chosen. Reclaim evicts units of other groups that use more than their guarantee, for a claimant
// that stays within the guarantee of its own group. Preemption evicts units with lower priority in the claimant's
// queue.
//
// Laws:
//
//   - Units are evicted only if the claimant then fits.
//   - Reclaim needs a claimant whose own group is owed its requests, and that lacks only resources that the
//     guarantee of its group names. Room that victims would free in other resources does not count.
//   - When a victim is taken for reclaim, its group uses more than its guarantee of a resource that the claimant
//     lacks. So does each ancestor of the group, up to the first node that victim and claimant have in common.
//   - A claimant that would borrow does not preempt a unit if the group would then use less of its guarantee than
//     before. Otherwise the guarantee would be lent again, and reclaiming it would make room for the claimant again, in
//     an endless loop.
//   - Victims come from the branch that is furthest above its guarantee, by share. The shares are compared again after
//     each victim. Within a group, candidates are taken in order. If that fails because a small victim brings its group
//     within its guarantee and so protects a large one, the largest users are taken first.
//   - No victim is unnecessary: without any one of them, the claimant would not fit, or would not be owed what is
//     reclaimed for it.
//
// The choice is deterministic and depends only on what is charged. To try candidates, the package uncharges and charges
// them in the backend, and restores it afterwards.
package preemption
