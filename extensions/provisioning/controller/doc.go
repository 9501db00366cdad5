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
//   - A step that is repeated after any of its writes gives the same objects.
//   - Objects of others are neither used nor deleted, even if they have a name that is needed.
//   - Requests are watched only if a check of this controller exists, or templates of one that is gone, and the API
//     server serves them.
package controller
