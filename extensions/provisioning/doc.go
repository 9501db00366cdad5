// Package provisioning decides the admission checks that ask an autoscaler for nodes: those with the controllerName
// "kube-queue.dev/provisioning-request". It is pure: it computes the objects to create for a unit, and what their
// state means for the check. Package controller reads and writes the objects.
//
// Terms. A request is a ProvisioningRequest of autoscaling.x-k8s.io. An attempt is one reservation of quota by a
// unit, counted in status.reservations. Each attempt has at most one request for each check. Its templates are
// PodTemplates that describe the pods of the job to the autoscaler. A pod set is managed if the check is for it.
//
// Invariants:
//
//   - The names of objects are derived: the name of a request from unit, check and attempt, and the name of a
//     template from its request and content. So a step that is repeated after a crash finds the objects of the
//     first one, and no template changes while a request refers to it.
//   - The unit owns its requests and templates, so they never outlive it.
//   - An entry of status.admissionChecks with podSetUpdates means that the request was created. If it no longer exists,
//     someone has deleted it.
//   - A mistake that the owner can fix without changing the unit's spec is a Retry, because a rejected unit is not
//     tried again.
//   - A failed request is final. It remains until the next request of the unit is created, because that one counts
//     how many have failed in a row.
package provisioning
