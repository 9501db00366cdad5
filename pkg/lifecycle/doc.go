// Package lifecycle says how a QueueUnit lives: which moves there are and who makes
// them, how far an eviction has come, and what is written to a unit's status at each
// move. Both programs take it from here, so that each reads what the other has
// written.
//
// Words. A move takes a unit from one state to another, in one write. A state is a
// phase and, with condition Evicted, how far an eviction has come.
//
// Invariants:
//   - The package is pure: it has no client and no clock, and changes no unit that it
//     is given.
//   - Moves is the table "Who moves a unit" of docs/development/architecture.md. Each status here
//     makes the move of its name.
package lifecycle
