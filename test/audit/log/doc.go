// Package log reads the audit log of an API server, for all that want to know
// something of it: it finds the lines of a log that may be compressed, cut off or
// still being written, and the entries that stand on them.
//
// Words. An entry is one request as one line reports it. A write is an entry whose
// request was to change an object and has been answered.
//
// It judges nothing, and knows nothing of kube-queue.
package log
