package web

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	visibility "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/test/require"
)

// tokens are pages that accept every token until it is revoked.
type tokens struct {
	*Server
	t       *testing.T
	url     string
	revoked atomic.Bool
}

func serveTokens(t *testing.T, of func(token string) *cluster, mostAge time.Duration) *tokens {
	t.Helper()
	s := &tokens{t: t}
	server := httptest.NewUnstartedServer(nil)
	s.Server = New(Options{ByToken: true, MostAge: mostAge, Hosts: []string{server.Listener.Addr().String()}, Refresh: time.Millisecond, Now: time.Now, Open: func(token string) (Reader, error) {
		if s.revoked.Load() {
			return nil, apierrors.NewUnauthorized("revoked")
		}
		return of(token), nil
	}})
	server.Config.Handler = s.Server
	server.Start()
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *tokens) ask(ctx context.Context, token, method, page, form string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, s.url+page, strings.NewReader(form))
	require.NoError(s.t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultClient.Do(r)
	require.NoError(s.t, err)
	return response
}

func TestAStreamEndsWithItsTokenItsAgeAndItsServer(t *testing.T) {
	for name, c := range map[string]struct {
		age time.Duration
		end func(*tokens)
	}{
		"a token that is revoked":        {0, func(s *tokens) { s.revoked.Store(true) }},
		"a stream that is too old":       {50 * time.Millisecond, func(*tokens) {}},
		"a server that is to be stopped": {0, func(s *tokens) { s.EndStreams() }},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveTokens(t, func(string) *cluster { return &cluster{name: "train-a"} }, c.age)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			response := s.ask(ctx, "a", http.MethodGet, "/live?page=/", "")
			defer response.Body.Close()
			lines := bufio.NewScanner(response.Body)
			if !lines.Scan() || !strings.HasPrefix(lines.Text(), "data: ") {
				t.Fatalf("status %d, line %q", response.StatusCode, lines.Text())
			}
			c.end(s)
			for lines.Scan() {
			}
			if err := lines.Err(); err != nil {
				t.Errorf("the stream does not end: %v", err)
			}
		})
	}
}

func TestCallersDoNotWaitForEachOther(t *testing.T) {
	of := map[string]*cluster{}
	for _, token := range []string{"a", "b"} {
		of[token] = &cluster{name: token, slow: make(chan struct{})}
	}
	s := serveTokens(t, func(token string) *cluster { return of[token] }, 0)
	form := url.Values{"manifests": {"root"}}.Encode()
	first := make(chan int, 2)
	for token, c := range of {
		go func() {
			response := s.ask(t.Context(), token, http.MethodPost, "/what-if", form)
			response.Body.Close()
			first <- response.StatusCode
		}()
		c.slow <- struct{}{}
	}
	second := s.ask(t.Context(), "a", http.MethodPost, "/what-if", form)
	second.Body.Close()
	if second.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a second simulation of a caller: status %d", second.StatusCode)
	}
	for _, c := range of {
		c.slow <- struct{}{}
	}
	for range 2 {
		if code := <-first; code != http.StatusOK {
			t.Errorf("a simulation beside another caller's: status %d", code)
		}
	}
	var all turns
	for range 3 {
		if !all.begin("a", 2, 3) {
			break
		}
	}
	if all.begin("a", 2, 3) || !all.begin("b", 2, 3) || all.begin("c", 2, 3) {
		t.Errorf("turns are not bounded: %v", all.of)
	}
	all.end("b")
	if !all.begin("c", 2, 3) || len(all.of) != 2 {
		t.Errorf("turns do not end: %v", all.of)
	}
}

func TestAStreamOutlivesTheTimeToReadItsRequest(t *testing.T) {
	c := &cluster{name: "train-a"}
	server := httptest.NewUnstartedServer(nil)
	server.Config.Handler = New(Options{ByToken: true, Hosts: []string{server.Listener.Addr().String()}, Refresh: time.Millisecond, Now: time.Now,
		Open: func(string) (Reader, error) { return c, nil }})
	server.Config.ReadTimeout = 500 * time.Millisecond // a busy machine needs some of it for the request
	server.Start()
	t.Cleanup(server.Close)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/live?page=/", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer a")
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for began := time.Now(); time.Since(began) < 2*server.Config.ReadTimeout; {
		c.changes.Add(1)
		for ended := false; !ended; ended = lines.Text() == "" { // one event
			if !lines.Scan() {
				t.Fatalf("the stream ended after %v: %v", time.Since(began), lines.Err())
			}
		}
	}
}

// slow is a cluster that answers when end is closed.
type slow struct {
	*cluster
	now atomic.Int32
	end chan struct{}
}

func (s *slow) Units(ctx context.Context, namespace string, spec visibility.QueueReviewSpec) (*visibility.QueueReviewStatus, error) {
	s.now.Add(1)
	defer s.now.Add(-1)
	<-s.end
	return s.cluster.Units(ctx, namespace, spec)
}

func TestOnlySoManyPagesAreReadAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &slow{cluster: &cluster{name: "train-a"}, end: make(chan struct{})}
		s := New(Options{ByToken: true, Hosts: []string{"pages"}, Refresh: time.Second, Now: time.Now, Open: func(string) (Reader, error) { return c, nil }})
		var answered sync.WaitGroup
		for i := range 3 * allReads {
			answered.Go(func() {
				r := httptest.NewRequest(http.MethodGet, "http://pages/", nil)
				r.Header.Set("Authorization", fmt.Sprint("Bearer ", i))
				w := httptest.NewRecorder()
				if s.ServeHTTP(w, r); w.Code != http.StatusOK {
					t.Errorf("status %d", w.Code)
				}
			})
		}
		synctest.Wait()
		if reading := c.now.Load(); reading != allReads {
			t.Errorf("%d pages are read at the same time, want %d", reading, allReads)
		}
		close(c.end)
		answered.Wait()
	})
}

// The stream of a page reads it again. So the browser waits first, longer if the page took long.
func TestAPageThatWasJustReadIsNotReadAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for took, want := range map[time.Duration]string{0: `data-rest="1000"`, 100 * time.Millisecond: `data-rest="2000"`, 10 * time.Second: `data-rest="15000"`} {
			s := New(Options{ByToken: true, Hosts: []string{"pages"}, Refresh: time.Second, Now: time.Now, Open: func(string) (Reader, error) {
				<-time.After(took) // by the clock of synctest
				return &cluster{name: "train-a"}, nil
			}})
			r := httptest.NewRequest(http.MethodGet, "http://pages/", nil)
			r.Header.Set("Authorization", "Bearer a")
			w := httptest.NewRecorder()
			if s.ServeHTTP(w, r); !strings.Contains(w.Body.String(), want) {
				t.Errorf("a page that took %v does not show %s:\n%s", took, want, w.Body)
			}
		}
	})
}

// connection accepts deadlines.
type connection struct{ *httptest.ResponseRecorder }

func (connection) SetReadDeadline(time.Time) error  { return nil }
func (connection) SetWriteDeadline(time.Time) error { return nil }

func TestAStreamWithoutChangesSendsHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{ByToken: true, Hosts: []string{"pages"}, Refresh: time.Second, MostAge: 3*heartbeat + time.Second/2, Now: time.Now,
			Open: func(string) (Reader, error) { return &cluster{name: "train-a"}, nil }})
		r := httptest.NewRequest(http.MethodGet, "http://pages/live?page=/quotas", nil)
		r.Header.Set("Authorization", "Bearer a")
		w := connection{httptest.NewRecorder()}
		s.ServeHTTP(w, r)
		if events, beats := strings.Count(w.Body.String(), "As of"), strings.Count(w.Body.String(), ": nothing has changed\n\n"); events != 1 || beats != 3 {
			t.Errorf("%d events and %d heartbeats:\n%s", events, beats, w.Body)
		}
	})
}
