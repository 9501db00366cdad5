// Package model replays the writes of an audit log and knows the cluster as it was at
// each of them: the jobs, units, pods and quotas that there were, and who held which
// quota. It checks nothing; package checks does.
//
// Words. A write is one entry that changed something, or tried to. A row is what
// the checker has to know of one kind of job. A claim is quota that is really in
// use: it opens when a unit gets a phase that holds quota or when its job is
// released, whichever is first, and closes when the job itself has ended, is
// gone, or is suspended with its unit requeued. It counts at the group that the
// tree in force gives its namespace, whatever the tree was when it opened; where
// the tree has no group for it any more, at the node nearest to the one that
// admitted it.
//
// Where quota is by ResourceQuota, a claim counts in its namespace what its unit's pods
// request, or what the job's pods use if that is more. Pods that belong to no
// claim take, too. A job starts with as many pods as its unit's pod sets say.
//
// Order. Every object of a cluster has its resourceVersion from one sequence, so
// writes are put in the order of what they returned, whatever the order of their
// lines. A write that returned no version of its own, as most deletes do, is
// put at the earliest place that it can have had: after the last write of its
// object and after all that was complete when its request came in. The latest
// place would be the one of its own completion, which under load comes well
// after the effects that others saw; taking it would report room that was rightly
// used again as room that was not there. The price is blindness for the few
// milliseconds that such a request takes.
//
// A write that was given up without an answer, as when its program is killed, may
// have been carried out all the same. The next write of its object shows this, and it
// is put at the time when it was given up.
package model
