// Package queue keeps waiting units in order and knows which of them are worth
// trying now.
//
// Words. An item is a waiting unit. A shape is the set of items of one queue
// that demand the same: where one of them has no room, none has, so a refusal
// is kept once for the whole shape. A shape is ready when it is worth trying,
// parked when it was refused and nothing that it lacks has been freed since,
// and impossible when nothing that running jobs give back could help it. The
// index is where parked shapes stand, by what they lack.
//
// Order inside a queue is priority (the greater first), then submission time,
// then name: a total order that nothing but a change of the unit itself alters.
// The policy says who may go out of turn:
//
//   - RoundRobin: a refused shape backs off, longer each time, and others
//     are tried before it meanwhile; room that none of those can use is its own.
//   - Priority: the same without backoff.
//   - Block: only the front item is tried.
//
// Backoff belongs to the shape, not to the item: items of one shape would all
// have been refused in the same turn, and among them first come stays first
// served.
//
// Invariants. An item is in exactly one shape, a shape with items in exactly one
// of ready, parked and impossible. The cost of an operation is logarithmic in
// the number of items, and waking costs that for each shape which the freed room
// could hold; nothing is ever proportional to the number of waiting items.
package queue
