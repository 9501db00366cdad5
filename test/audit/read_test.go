package audit

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/require"
)

func TestReadRefusesInvalidLogs(t *testing.T) {
	s := newScript(t)
	s.tell("a:1 held")
	_, err := Read(strings.NewReader("nonsense\n" + string(s.bytes())))
	require.ErrorSays(t, err, "line 1")
	for _, e := range s.entries {
		delete(e, "responseObject")
	}
	if _, err := Read(bytes.NewReader(s.bytes())); !errors.Is(err, ErrNoObjects) {
		t.Errorf("got %v, want %v", err, ErrNoObjects)
	}
	log, err := Read(strings.NewReader(""))
	require.NoError(t, err)
	if _, err := log.Check(Options{}); !errors.Is(err, ErrNothing) {
		t.Errorf("got %v, want %v", err, ErrNothing)
	}
}

func TestObjectsOfTheAPIServerAreRead(t *testing.T) {
	const (
		deleted   = "tree; a:3 admit; a patch admin metadata.finalizers=[foregroundDeletion] metadata.deletionTimestamp=now+0s metadata.deletionGracePeriodSeconds=0; verb delete; "
		finalized = "a patch collector metadata.finalizers=-; same-version; "
		next      = "b:3 admit; a.unit remove collector"
	)
	tellAll(t, Options{}, []story{
		{"unknown kinds and invalid objects are ignored", `a:1 event; b make tfjob admin {spec: nonsense, status: {conditions: 3}};
			t make tree admin {metadata: {namespace: kube-system}, spec: {root: {name: r, max: {cpu: nonsense}}}}`, ""},
		{"a deleted collection is seen", "tree; a:3 admit; a collection admin; " + next, ""},
		{"an object ends with its last finalizer", deleted + finalized + next, ""},
		{"also if the server returns its metadata alone, as to the garbage collector", deleted + finalized + "metadata; " + next, ""},
		{"but not before", deleted + next, "over-limit"},
		{"a job with a finalizer is being deleted with its collection, whose answer comes late",
			"tree; a:3 enqueue; a patch training-operator metadata.finalizers=[example.com/finalizer]; mark; a collection admin; answered 10m; a.unit remove extensions", ""},
		{"the unit of one that is not is needed", "tree; a:3 enqueue; a patch training-operator metadata.finalizers=[example.com/finalizer]; a.unit remove extensions", "unit-deleted"},
	})
}
