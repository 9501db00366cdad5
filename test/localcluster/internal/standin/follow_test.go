package standin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"kube-queue.dev/kube-queue/test/localcluster/internal/kube"
	"kube-queue.dev/kube-queue/test/require"
)

func clientOf(t *testing.T, server string) *kube.Client {
	t.Helper()
	client, err := kube.New(&rest.Config{Host: server})
	require.NoError(t, err)
	return client
}

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

func podText(uid string, version int) string {
	return fmt.Sprintf(`{"metadata":{"uid":%q,"resourceVersion":"%d"}}`, uid, version)
}

func listOf(pods ...string) string {
	return `{"metadata":{"resourceVersion":"5"},"items":[` + strings.Join(pods, ",") + "]}"
}

func change(kind, pod string) string {
	return fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", kind, pod)
}

// follow runs a follower until it has passed the wanted states. The handler fails once for the state in
// fails.
func follow(t *testing.T, answers []string, fails string, want ...string) {
	t.Helper()
	server := httptest.NewServer(&script{answers: answers})
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var seen []string
	follower := podFollower{
		client: clientOf(t, server.URL), selector: "a=b", say: func(error) {},
		handle: func(_ context.Context, pod *pod, deleted bool) error {
			text := pod.Metadata.UID + "@" + pod.Metadata.ResourceVersion
			if deleted {
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
	}
	follower.run(ctx)
	if !slices.Equal(seen, want) {
		t.Errorf("seen %q, want %q", seen, want)
	}
}

func TestFollowerPassesAllPodsAndTheirChanges(t *testing.T) {
	listed := listOf(podText("a", 3), podText("b", 4))
	later := listOf(podText("b", 4), podText("c", 8))
	unseen := []string{"a@3", "b@4", "b@4", "c@8", "a@3 deleted"}
	for name, test := range map[string]struct {
		answers []string
		fails   string
		want    []string
	}{
		"of a watch, and of the list after it": {
			[]string{listOf(podText("a", 3)), change("MODIFIED", podText("a", 6)) + change("ADDED", podText("b", 9)) + change("DELETED", podText("a", 10)), listOf(podText("b", 9))},
			"", []string{"a@3", "a@6", "b@9", "a@10 deleted", "b@9"},
		},
		"after an expired watch":              {[]string{listed, "gone", later}, "", unseen},
		"after a watch that expires":          {[]string{listed, change("ERROR", `{"kind":"Status","code":410}`), later}, "", unseen},
		"after a watch that was cut off":      {[]string{listed, `{"type":"MODIF`, later}, "", unseen},
		"again, if one of a list failed":      {[]string{listed, listed}, "a@3", []string{"a@3", "b@4", "a@3", "b@4"}},
		"again, if one failed, after others":  {[]string{listOf(), change("ADDED", podText("a", 3)) + change("ADDED", podText("b", 4)), listed}, "a@3", []string{"a@3", "b@4", "a@3", "b@4"}},
		"again, if that of a deletion failed": {[]string{listOf(podText("a", 3)), change("DELETED", podText("a", 6)), listOf()}, "a@6 deleted", []string{"a@3", "a@6 deleted", "a@6 deleted"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			follow(t, test.answers, test.fails, test.want...)
		})
	}
}
