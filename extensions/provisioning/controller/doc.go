// Package controller decides admission checks by ProvisioningRequests. Package provisioning decides, and this package
// reads and writes the objects.
//
// For a unit that holds quota for a check, it creates templates first and then the request, so that an autoscaler
// never sees a request without its templates. Then it writes the entry of the check with the podSetUpdates of the
// job, which also records that the request was created. When the unit frees its quota or ends, it deletes the
// request, so that no unused nodes are kept.
//
// Invariants:
//
//   - A write of an entry carries the resourceVersion of the unit that it is based on, and keeps the entries of
//     other checks. Nothing is written if nothing has changed.
//   - Repeating a step after any of its writes results in the same objects.
//   - The controller neither uses nor deletes the objects of others, even if it needs their names.
//   - Requests are watched only if the API server serves them, and a check of this controller exists or has left
//     templates behind.
package controller
