// Package codec reads QueueUnits and Queues for the core.
//
// A unit has three forms on its way to a decision. The QueueUnit comes from the API server. A Compactor reduces it
// right after decoding to the fields that the controller uses, and the cache of the informer retains only its name
// (Cached). A Reader converts it to a scheduler.Unit, which the core stores in its own form.
//
// The readable part of a unit represents it if it cannot be decoded, for example because it requests "1e1.5" cores. The
// part within the bounds represents a unit beyond them. Such a unit is never admitted, but keeps any quota it holds.
package codec
