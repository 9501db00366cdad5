// Package log reads the lines and entries of the audit log of an API server. The log may be
// compressed, cut off or still being written.
//
// Terms. An entry is the record of one request on one line. A write is an entry of an
// answered request that changes an object.
//
// The package is independent of kube-queue and checks nothing.
package log
