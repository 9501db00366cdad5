// Package codec reads QueueUnits and Queues for the core.
//
// A unit has three forms on its way to a decision. The QueueUnit comes from the API server; a Compactor reduces it to
// what counts as soon as it is decoded, and the cache of the informer retains only its name (Cached). A Reader
// converts it to a scheduler.Unit. The core stores that in its own form.
//
// A unit that cannot be decoded, such as one that requests "1e1.5" cores, is represented by its readable part, and a
// unit beyond the bounds by the part within. It is never admitted. If it holds quota, it keeps it.
package codec
