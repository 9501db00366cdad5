// Package rights proves that the programs have the rights that they use and no others.
//
// Words. A right is one verb on one resource of one API group, for one program; in one
// namespace or in all, for one name or for any. What is granted is in the manifests
// of deploy/rbac. What is used is in the audit logs of the clusters that tests ran:
// each one leaves a list of it (Collect), and once all tests have run the lists together
// must be what is granted (Compare).
//
// Only requests of the programs themselves count, reported by their user agent: tests act as
// their ServiceAccounts too.
package rights
