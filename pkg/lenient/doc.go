// Package lenient decodes API objects one by one, so that an object that cannot be decoded never hides the others.
//
// A CRD schema accepts values that Go types do not, such as the quantity "1e1.5" or a time without microseconds. Such
// an object breaks the list or the watch of a typed client that contains it, and so stops its whole kind for all
// users. In this package it becomes an Unreadable: its metadata, everything else of it that can be decoded, and what
// is wrong with the rest.
//
// Terms. A Kind describes what is decoded and into which type. A Client gets, lists, watches and patches objects of a
// kind. An Informer caches them.
//
// Invariants. What can be decoded is decoded like in a typed client, and at the same cost. Only an object that fails
// is split into its parts. No text takes long to decode: a quantity with a huge exponent, which
// resource.ParseQuantity needs minutes for, is an error like any other.
package lenient
