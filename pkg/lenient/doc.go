// Package lenient decodes API objects one by one, so that an object that cannot be decoded never hides the others.
//
// A CRD schema accepts values that Go types do not, such as the quantity "1e1.5" or a time without microseconds. Such
// an object breaks each list or watch of a typed client that contains it, and so stops its whole kind for all users.
// This package turns it into an Unreadable: its metadata, all other parts that can be decoded, and what is wrong with
// the rest.
//
// Terms. A Kind describes which objects to decode and into which type. A Client gets, lists, watches and patches
// objects of a kind. An Informer caches them.
//
// Invariants. A readable object is decoded as by a typed client, and at the same cost. Only an object that fails is
// split into its parts. No text takes long to decode: a quantity with a huge exponent, which takes
// resource.ParseQuantity minutes, is an error like any other.
package lenient
