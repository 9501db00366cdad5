// Package wellknown holds the words that kube-queue and its users share, each defined
// once: reasons, reasons of events, condition types, and the keys of annotations and
// labels. The phases of a unit are a type of the API and are in v1alpha1.
//
// A word never changes its meaning, for users and their tools read it. A new one goes
// here and to docs/reference/reasons.md or docs/operations/configuration.md. TestWordsAreDefinedOnce fails
// when a program uses a word that an API package does not define.
//
// The package imports nothing, so that the core, which knows no Kubernetes types, can
// use it too.
package wellknown
