// Package lenient reads API objects one by one, so that one object that cannot
// be read never hides the others.
//
// A CRD schema lets through what Go types do not take, as the quantity "1e1.5" or
// a time without its microseconds. To a typed client such an object fails the
// list or the watch that it comes in, and stops its whole kind for everybody.
// Here it becomes an Unreadable: its metadata, all else of it that can be read,
// and what is wrong with the rest.
//
// Words. A Kind says what is read and into which type. A Client gets, lists,
// watches and patches objects of a kind; Informer caches them.
//
// Invariants. What can be read is read as a typed client would, in one pass and
// at no greater cost; only what fails is taken apart. No text takes long to read:
// a quantity with a huge exponent, over which resource.ParseQuantity sits for
// minutes, is a fault like any other.
package lenient
