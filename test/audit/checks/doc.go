// Package checks verifies the writes of an audit log one by one, with the last objects that package
// state remembers. Laws compare sums of them.
//
// Terms. A check verifies one law. A rule is one way to violate it. Cases for which the log
// contains too little information are not checked, but counted.
//
// A new check is one file and one row in the list of all checks.
package checks
