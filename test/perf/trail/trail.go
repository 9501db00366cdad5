// Package trail reads the audit log of a cluster for the load tool: who wrote what, how often,
// and when.
//
// It checks nothing; test/audit does. Both use package log of test/audit for lines and
// entries. The checker holds all writes of a run in memory, tracks objects over their lives,
// and requires logs with all objects. A log of a load test has hundreds of megabytes and
// almost no objects, so this package reads it once, as a stream, and retains no entries.
//
// Terms. An entry is an answered write. An agent is the program that sent the write: the first
// word of its user agent without the version. A write is refused if its response is not a
// success.
//
// The log must be written at level Metadata, stage ResponseComplete, without reads. Owner and
// Suspended are only known for jobs and pods that are logged with their objects; see
// --audit-objects of localcluster.
package trail

import (
	"time"

	"kube-queue.dev/kube-queue/test/audit/log"
)

// Entry is one write.
type Entry struct {
	// Agent is the program and User the user of the write.
	Agent, User                        string
	Verb, Group, Resource, Subresource string
	// Name is the name of the object. It is empty for a generated name if the object is not logged.
	Namespace, Name string
	// Code is the HTTP status of the response.
	Code               int
	Received, Answered time.Time

	// Whole reports that the object was logged. The fields below are only set if it is true.
	Whole bool
	// Owner is the name of the controller that a pod belongs to.
	Owner string
	// Suspended reports whether a job is suspended after the write.
	Suspended bool
}

// OK reports whether the write succeeded.
func (e *Entry) OK() bool { return log.Success(e.Code) }

// Creates reports whether the write created an object of this resource.
func (e *Entry) Creates(resource string) bool {
	return e.Resource == resource && e.Subresource == "" && e.OK() && (e.Verb == "create" || e.Code == 201)
}

// Log is an audit log that is read in parts. Each part starts at the end of the previous one.
type Log struct {
	file   *log.File
	reader decoder
}

// Open opens a log, which can still be written.
func Open(path string) *Log { return &Log{file: log.Open(path), reader: newDecoder()} }

// Skip skips the current contents of the log.
func (l *Log) Skip() error { return l.Read(nil) }

// Read visits the entries since the previous part. An incomplete last line belongs to the next
// part. With nil the part is skipped.
func (l *Log) Read(visit func(*Entry)) error {
	return l.file.Read(func(number int, line []byte) error {
		if visit == nil || len(line) == 0 {
			return nil
		}
		entry, err := l.reader.entry(line)
		if err != nil {
			return log.NoEntry(number, err)
		}
		if entry != nil {
			visit(entry)
		}
		return nil
	})
}
