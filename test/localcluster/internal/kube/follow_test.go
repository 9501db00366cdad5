package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// script is a fake server of lists and watches. Each request gets the next response. The last one
// stays open.
type script struct {
	next    atomic.Int32
	answers []string
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	number := int(s.next.Add(1)) - 1
	if number >= len(s.answers) {
		<-r.Context().Done()
		return
	}
	if s.answers[number] == "gone" {
		w.WriteHeader(http.StatusGone)
		return
	}
	io.WriteString(w, s.answers[number])
}

func thing(uid string, version int) string {
	return fmt.Sprintf(`{"metadata":{"uid":%q,"resourceVersion":"%d"}}`, uid, version)
}

func listOf(things ...string) string {
	return `{"metadata":{"resourceVersion":"5"},"items":[` + strings.Join(things, ",") + "]}"
}

func change(kind, thing string) string {
	return fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", kind, thing)
}

// follow runs a Follower until it has seen the wanted changes. The handler fails once for the
// change in fails.
func follow(t *testing.T, answers []string, fails string, want ...string) {
	t.Helper()
	s := &script{answers: answers}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var seen []string
	follower := Follower[struct{ Metadata metadata }]{
		Client: serve(t, s.ServeHTTP), Path: "/things", Selector: "a=b",
		Handle: func(_ context.Context, c Change[struct{ Metadata metadata }]) error {
			text := c.UID + "@"
			if c.Object != nil {
				text += c.Object.Metadata.ResourceVersion
			}
			if c.Deleted {
				text += " deleted"
			}
			seen = append(seen, text)
			if len(seen) == len(want) {
				cancel()
			}
			if text == fails {
				fails = ""
				return errors.New("not now")
			}
			return nil
		},
		Say: func(error) {},
	}
	follower.Run(ctx)
	if !slices.Equal(seen, want) {
		t.Errorf("seen %q, want %q", seen, want)
	}
}

func TestFollowerPassesAllObjectsAndTheirChanges(t *testing.T) {
	listed := listOf(thing("a", 3), thing("b", 4))
	later := listOf(thing("b", 4), thing("c", 8))
	unseen := []string{"a@3", "b@4", "b@4", "c@8", "a@ deleted"}
	for name, test := range map[string]struct {
		answers []string
		fails   string
		want    []string
	}{
		"of a watch, and of the list after it": {
			[]string{listOf(thing("a", 3)), change("MODIFIED", thing("a", 6)) + change("ADDED", thing("b", 9)) + change("DELETED", thing("a", 10)), listOf(thing("b", 9))},
			"", []string{"a@3", "a@6", "b@9", "a@10 deleted", "b@9"},
		},
		"after an expired watch":              {[]string{listed, "gone", later}, "", unseen},
		"after a watch that expires":          {[]string{listed, change("ERROR", `{"kind":"Status","code":410}`), later}, "", unseen},
		"after a watch that was cut off":      {[]string{listed, `{"type":"MODIF`, later}, "", unseen},
		"again, if one of a list failed":      {[]string{listed, listed}, "a@3", []string{"a@3", "b@4", "a@3", "b@4"}},
		"again, if one failed, after others":  {[]string{listOf(), change("ADDED", thing("a", 3)) + change("ADDED", thing("b", 4)), listed}, "a@3", []string{"a@3", "b@4", "a@3", "b@4"}},
		"again, if that of a deletion failed": {[]string{listOf(thing("a", 3)), change("DELETED", thing("a", 6)), listOf()}, "a@6 deleted", []string{"a@3", "a@6 deleted", "a@ deleted"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			follow(t, test.answers, test.fails, test.want...)
		})
	}
}
