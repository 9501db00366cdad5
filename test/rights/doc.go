// Package rights checks that the programs have exactly the rights that they use.
//
// Terms. A right is one verb on one resource of one API group, for one program, in one or all
// namespaces, for one or all names. Granted rights are in the manifests of deploy/rbac, and of
// deploy/webhook/rbac for clusters where a webhook holds jobs. Used rights are read from the audit
// logs of the clusters of tests. Each cluster writes a list (Collect). After all tests, the union of
// the lists must equal the granted rights (Compare).
//
// By default the chart grants the rights of all kinds and backends, because administrators change both with
// kubectl edit.
//
// Only requests of the programs themselves count, identified by their user agent, because tests use
// their ServiceAccounts too.
package rights
