// Package facts turns the lines of an audit log into ordered writes with what they say about
// objects. It shares no code with the programs that are checked.
//
// Terms. A write is a log entry of a request that changes an object, successful or not. Its body has
// the facts that the laws need. A row describes one kind of job.
//
// Order. All objects of a cluster get their resourceVersion from one sequence, so writes are sorted
// by the version that they returned, not by line. Some writes returned no version of their own: most
// deletes, writes that changed nothing, and Events, which may be stored elsewhere. They get the earliest
// possible place: after the last write of their object, and after all writes that were complete when
// their request arrived. Their own completion would be well after others saw the effect, so reused
// quota would look like an excess. The cost is that nothing is detected in the few milliseconds of such
// a request. The removal of a pod is at most as late as the first write that was requested after it:
// the API server stores that the grace period is over, from then on nobody counts the pod, and the log
// contains only the version of the removal that follows.
//
// A write that was aborted without a response, for example because its program was killed, may
// still have been stored. The next write of its object shows whether it was. The aborted write gets
// the place of the time when it was aborted.
package facts
