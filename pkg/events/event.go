// Package events writes Events straight to the API server.
//
// client-go's recorder drops events when many are reported at once, and folds and
// limits those of one source. A job's events are part of the contract with its
// user, so here none is dropped: the queue has no bound, writes are tried again
// until they are done, and a bounded number of workers makes them.
//
// Every event has a name of its own that depends only on what it tells: telling
// it twice, by a second process or after a restart, makes one event.
//
// Words. To write an event is to have it exist once. To keep one is to have it
// exist for as long as it is true: the API server forgets events after an hour,
// so a kept one is renewed before that. An object has one kept event at most.
package events

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
)

const (
	// maxName is the longest name that an object may have.
	maxName = 253
	// hashLength is the number of letters that report the events of an object apart.
	hashLength = 16
)

// Event is what is to be reported an object.
type Event struct {
	// Object that the event is about. Its UID must be set: two objects that
	// have the same name one after the other have events of their own.
	Object corev1.ObjectReference
	// Type is corev1.EventTypeNormal or corev1.EventTypeWarning.
	Type string
	// Reason is one word, as "Released".
	Reason wellknown.EventReason
	// Message is a sentence.
	Message string
	// Key distinguishes the events that one object has for one reason, as the
	// number of an attempt. Events with equal object, reason and key are one.
	Key string
}

// Name of the Event object.
func (e Event) Name() string {
	sum := sha256.Sum256([]byte(string(e.Object.UID) + "\x00" + string(e.Reason) + "\x00" + e.Key))
	name := e.Object.Name
	if most := maxName - 1 - hashLength; len(name) > most {
		name = strings.TrimRight(name[:most], "-.")
	}
	return name + "." + hex.EncodeToString(sum[:])[:hashLength]
}

// namespace that the Event object is in.
func (e Event) namespace() string {
	if e.Object.Namespace == "" {
		return metav1.NamespaceDefault
	}
	return e.Object.Namespace
}

// build makes the Event object.
func (e Event) build(source Source, now metav1.Time) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: e.namespace(), Name: e.Name()},
		InvolvedObject:      e.Object,
		Type:                e.Type,
		Reason:              string(e.Reason),
		Message:             lifecycle.Shorten(e.Message),
		Source:              corev1.EventSource{Component: source.Component},
		ReportingController: source.Component,
		ReportingInstance:   source.Instance,
		FirstTimestamp:      now,
		LastTimestamp:       now,
		Count:               1,
	}
}
