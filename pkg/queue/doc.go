// Package queue keeps waiting units in order and knows which of them are worth trying now.
//
// Terms. An item is a waiting unit. A shape is the set of items of one queue with the same demand. If one of them does
// not fit, none fits, so a refusal is stored once for the shape. A shape is ready if it is worth trying, parked if it
// was refused and nothing that it lacks has been freed since, and impossible if freed quota cannot help it. The wait
// index holds the parked shapes by what they lack.
//
// The policy of a queue decides the order of its items, which of them may pass others, and when a refused one is tried
// again. The order is total and changes only when a unit itself changes. Each policy has a file.
//
// Backoff belongs to the shape, not to the item, because all items of a shape would have been refused in the same turn.
// Within a shape, the first item stays first. Backoff orders one queue only: a queue whose shapes all back off competes
// like any other.
//
// Invariants. An item is in exactly one shape. A shape with items is exactly one of ready, parked
// and impossible. The cost of an operation is logarithmic in the number of items. Waking has this
// cost for each shape that the freed room could hold. No cost is proportional to the number of
// waiting items.
package queue
