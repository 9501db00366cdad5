package queue

// RoundRobin lets items pass one that was refused, which backs off.
var RoundRobin = &Policy{Name: "RoundRobin", Before: (*Item).Older, Backoff: true}
