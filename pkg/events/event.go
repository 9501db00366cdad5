// Package events writes Events directly to the API server.
//
// The recorder of client-go drops events when many are reported at the same time, and aggregates and limits the events
// of one source. The events on a job are part of the contract with its user, so this package drops none that the API
// server accepts: its queue is unbounded, and a fixed number of workers retries each write until it succeeds.
//
// A namespace can refuse events, for example because of an admission policy. Then the package tries one of its events
// from time to time, and the others wait. Waiting costs no requests, so events of other namespaces are not delayed. An
// event is dropped after its namespace has refused events several more times, or immediately if the API server
// permanently rejects it.
//
// The name of an event depends only on its content, so an event that is reported twice, by a second process or after
// a restart, is created once.
//
// Terms. To write an event is to create it once. To keep an event is to renew it as long as it is true, because the API
// server deletes events after an hour. An object has at most one kept event. To repeat an event is to count it: an
// event that happens repeatedly is one Event, written less and less often.
package events

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
)

const (
	// maxName is the maximum length of an object's name.
	maxName = 253
	// hashLength is the number of letters that distinguish the events of an object.
	hashLength = 16
)

// Event is an event on an object.
type Event struct {
	// Object is the object of the event. Its UID must be set, so that successive objects of the same name have
	// separate events.
	Object corev1.ObjectReference
	// Type is corev1.EventTypeNormal or corev1.EventTypeWarning.
	Type string
	// Reason is a machine-readable word such as "Released".
	Reason wellknown.EventReason
	// Message explains the event to a person.
	Message string
	// Key distinguishes the events of one object with the same reason, for example by the number of an
	// attempt. Events with equal object, reason and key are the same event.
	Key string
	// Revision identifies the content of a kept event. The event is written again when its revision changes, but not
	// when only its message changes.
	Revision string
}

// digest returns a short text that distinguishes texts; empty for none.
func digest(text string) string {
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:hashLength]
}

// Name returns the name of the Event object.
func (e Event) Name() string {
	name := e.Object.Name
	if most := maxName - 1 - hashLength; len(name) > most {
		name = strings.TrimRight(name[:most], "-.")
	}
	return name + "." + digest(string(e.Object.UID)+"\x00"+string(e.Reason)+"\x00"+e.Key)
}

// namespace returns the namespace of the Event object.
func (e Event) namespace() string { return cmp.Or(e.Object.Namespace, metav1.NamespaceDefault) }

// build returns the Event object.
func (e Event) build(source Source, now metav1.Time, count int32) *corev1.Event {
	meta := metav1.ObjectMeta{Namespace: e.namespace(), Name: e.Name()}
	if e.Revision != "" {
		meta.Annotations = map[string]string{wellknown.RevisionAnnotation: digest(e.Revision)}
	}
	return &corev1.Event{
		ObjectMeta:          meta,
		InvolvedObject:      e.Object,
		Type:                e.Type,
		Reason:              string(e.Reason),
		Message:             lifecycle.Shorten(e.Message),
		Source:              corev1.EventSource{Component: source.Component},
		ReportingController: source.Component,
		ReportingInstance:   source.Instance,
		FirstTimestamp:      now,
		LastTimestamp:       now,
		Count:               count,
	}
}
