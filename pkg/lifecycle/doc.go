// Package lifecycle defines the life of a QueueUnit: which moves exist and who makes them, how far an eviction has
// progressed, and what each move writes to the status of a unit. Both programs use it, so that each can read what the
// other has written.
//
// Terms. A move takes a unit from one state to another in one write. A state is a phase and, with the condition
// Evicted, the progress of an eviction.
//
// Invariants:
//
//   - The package is pure: it has no client and no clock, and does not change its arguments.
//   - Moves is the table "Who moves a unit" of docs/development/unit-lifecycle.md. Each function that returns a
//     Status makes the move of its name. No program refuses a write that is missing from Moves, because the
//     unit would then keep its old state forever. Instead, tests find wrong writes. The checker in test/audit has
//     its own table, so a mistake cannot be in both.
//   - A status states each fact once. No condition repeats the phase, because each write counts.
package lifecycle
