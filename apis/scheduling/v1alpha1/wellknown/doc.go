// Package wellknown defines each constant that kube-queue shares with its users exactly once:
// reasons, reasons of events, condition types, and the keys of annotations and labels. The
// phases of a unit are a type of the API and are defined in v1alpha1.
//
// A constant never changes its meaning because users and their tools read it. Add a new one
// here and to docs/reference/reasons.md or docs/reference/job-keys.md.
// A cause gets a reason of its own only if something else helps against it. Otherwise the message
// shows the difference: a job that may not use kept room has QuotaExceeded, like others.
// TestWordsAreDefinedOnce fails when a program uses a constant that no API package defines.
//
// The package imports nothing, so that the core, which has no Kubernetes types, can use it too.
package wellknown
