package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// script is a fake server of lists and watches. Each request gets the next response. The last one
// stays open.
type script struct {
	mu      sync.Mutex
	asked   []string
	answers []string
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	number := len(s.asked)
	s.asked = append(s.asked, r.URL.Query().Get("resourceVersion"))
	s.mu.Unlock()
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

func listOf(version int, things ...string) string {
	list := fmt.Sprintf(`{"metadata":{"resourceVersion":"%d"},"items":[`, version)
	for i, one := range things {
		if i > 0 {
			list += ","
		}
		list += one
	}
	return list + "]}"
}

func change(kind, thing string) string {
	return fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", kind, thing)
}

// follow runs a Follower until it has seen the wanted changes. The handler fails once for the
// change in fails.
func follow(t *testing.T, answers []string, fails string, want ...string) *script {
	t.Helper()
	s := &script{answers: answers}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var seen []string
	follower := Follower{
		Client: serve(t, s.ServeHTTP), Path: "/things", Selector: "a=b",
		Handle: func(_ context.Context, c Change) error {
			var m struct{ Metadata metadata }
			if c.Object != nil {
				if err := json.Unmarshal(c.Object, &m); err != nil {
					return err
				}
			}
			text := c.UID + "@" + m.Metadata.ResourceVersion
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
	return s
}

func TestWatchContinuesAtTheLastVersion(t *testing.T) {
	s := follow(t, []string{
		listOf(5, thing("a", 3)),
		change("MODIFIED", thing("a", 6)) + change("BOOKMARK", thing("", 8)),
		change("ADDED", thing("b", 9)) + change("DELETED", thing("a", 10)),
	}, "", "a@3", "a@6", "b@9", "a@10 deleted")
	if want := []string{"", "5", "8"}; !slices.Equal(s.asked, want) {
		t.Errorf("the watches started at %q, want %q", s.asked, want)
	}
}

func TestUnseenDeletionIsReported(t *testing.T) {
	for name, expired := range map[string]string{
		"at once":    "gone",
		"in between": change("ERROR", `{"kind":"Status","code":410}`),
		"cut off":    `{"type":"MODIF`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			follow(t, []string{
				listOf(5, thing("a", 3), thing("b", 4)),
				expired,
				listOf(9, thing("b", 4), thing("c", 8)),
			}, "", "a@3", "b@4", "b@4", "c@8", "a@ deleted")
		})
	}
}

func TestFailedChangeIsRetried(t *testing.T) {
	again := listOf(9, thing("a", 6), thing("b", 7))
	t.Run("of a list", func(t *testing.T) {
		t.Parallel()
		follow(t, []string{listOf(9, thing("a", 6), thing("b", 7)), again}, "a@6", "a@6", "b@7", "a@6", "b@7")
	})
	t.Run("of a watch, while others continue", func(t *testing.T) {
		t.Parallel()
		follow(t, []string{listOf(5), change("ADDED", thing("a", 6)) + change("ADDED", thing("b", 7)), "", again},
			"a@6", "a@6", "b@7", "a@6", "b@7")
	})
	t.Run("of an end", func(t *testing.T) {
		t.Parallel()
		follow(t, []string{listOf(5, thing("a", 3)), change("DELETED", thing("a", 6)), listOf(9)},
			"a@6 deleted", "a@3", "a@6 deleted", "a@ deleted")
	})
}
