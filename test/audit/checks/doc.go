// Package checks judges the writes of an audit log, one after the other, by what
// package model knows at each of them.
//
// Words. A check is one law, and a rule one way to break it. What the log shows too
// little of is not judged, and counted.
//
// A new check is one file and one row in the list of all.
package checks
