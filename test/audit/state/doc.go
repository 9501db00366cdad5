// Package state remembers each object as the audit log showed it last: jobs, units, pods, quota trees,
// and ResourceQuotas. It decides nothing; package checks has the laws.
//
// Terms. A unit holds quota in the phases Reserved, Dequeued and Running. An admission is a write by
// which a unit gets into one of them. A pod counts for the nearest object among itself and its
// controllers that has, or had, an admitted unit: its charge.
//
// Uncertainty. A unit whose job has ended or is gone holds nothing, and neither does a unit after a write
// without an answer until the next write of it. A pod counts no more after a delete without an answer,
// after a 404 and after another pod has its name; nor if its unit is gone and another process decides,
// which never saw that unit. So the sums are never too large, and the laws compare only what is too large.
package state
