package faultproxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"kube-queue.dev/kube-queue/test/require"
)

const unitPath = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/team/queueunits/one/status"

// apiServer is a fake API server. It counts requests, and its watches report each write.
type apiServer struct {
	mu     sync.Mutex
	landed []string
	events chan string
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") != "" {
		w.WriteHeader(http.StatusOK)
		fmt.Fprintln(w, "begins")
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case text := <-s.events:
				fmt.Fprintln(w, text)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.landed = append(s.landed, r.Method+" "+string(body))
	count := len(s.landed)
	s.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer secret" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"answer-%d"}}`, count)
}

// report sends an event to the watch.
func (s *apiServer) report(t *testing.T, text string) {
	t.Helper()
	select {
	case s.events <- text:
	case <-time.After(10 * time.Second):
		t.Fatal("there is no watch to send " + text)
	}
}

func (s *apiServer) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.landed)
}

// scene is a proxy between a client and an API server.
type scene struct {
	t        *testing.T
	server   *apiServer
	upstream *httptest.Server
	proxy    *Proxy
	client   *http.Client
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, server: &apiServer{events: make(chan string)}}
	upstream := httptest.NewUnstartedServer(s.server)
	upstream.EnableHTTP2 = true
	upstream.StartTLS()
	s.upstream = upstream
	t.Cleanup(upstream.Close)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: upstream.Certificate().Raw})
	var err error
	s.proxy, err = Start(&rest.Config{Host: upstream.URL, TLSClientConfig: rest.TLSClientConfig{CAData: certificate}})
	require.NoError(t, err)
	t.Cleanup(s.proxy.Close)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.proxy.Certificate())
	s.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
	return s
}

// ask sends a request and returns the body of the response. It gives up when the context ends or
// the connection breaks.
func (s *scene) ask(ctx context.Context, method, path, body string) (string, *http.Response, error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, s.proxy.URL()+path, strings.NewReader(body))
	require.NoError(s.t, err)
	request.Header.Set("Authorization", "Bearer secret")
	response, err := s.client.Do(request)
	if err != nil {
		return "", nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), response, err
}

// warm opens the connections, so that opening them does not use up a client's timeout.
func (s *scene) warm() {
	s.t.Helper()
	if _, _, err := s.ask(s.t.Context(), http.MethodGet, unitPath, ""); err != nil {
		s.t.Fatal(err)
	}
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.landed = nil
}

// watch starts a watch, reads its first line and returns a reader of the rest.
func (s *scene) watch() *bufio.Reader {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.proxy.URL()+"/api/v1/pods?watch=true", nil)
	require.NoError(s.t, err)
	response, err := s.client.Do(request)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = response.Body.Close() })
	lines := bufio.NewReader(response.Body)
	if line, err := lines.ReadString('\n'); line != "begins\n" {
		s.t.Fatalf("the watch begins with %q: %v", line, err)
	}
	return lines
}

func all(Request) bool { return true }

func TestFaultDecidesWhetherAWriteLandsAndIsAnswered(t *testing.T) {
	for _, test := range []struct {
		name     string
		fault    Fault
		landed   int
		answered bool
		// patience is the timeout of the program. Zero means no timeout.
		patience time.Duration
	}{
		{name: "forwarded", fault: (*Exchange).Forward, landed: 1, answered: true},
		{name: "cut before it landed", fault: (*Exchange).Cut},
		{name: "cut after it landed", fault: func(x *Exchange) { x.Land(); x.Cut() }, landed: 1},
		{name: "so late that nobody waits for it any more", fault: func(x *Exchange) {
			<-x.r.Context().Done()
			x.Forward()
		}, landed: 1, patience: 300 * time.Millisecond},
		{name: "a fault that does nothing", fault: func(*Exchange) {}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScene(t)
			s.warm()
			s.proxy.Intercept(all, test.fault)
			ctx := t.Context()
			if test.patience > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, test.patience)
				defer cancel()
			}
			text, response, err := s.ask(ctx, http.MethodPatch, unitPath, "patch")
			switch {
			case !test.answered && err == nil:
				t.Errorf("it was answered: %s", text)
			case test.answered && (err != nil || response.StatusCode != http.StatusOK || !strings.Contains(text, "answer-1")):
				t.Errorf("%v %v: %s", err, response, text)
			}
			require.Becomes(t, "the request arrives", func() bool { return s.server.count() == test.landed })
			// Later requests succeed.
			if _, response, err := s.ask(t.Context(), http.MethodGet, unitPath, ""); err != nil || response.StatusCode != http.StatusOK {
				t.Errorf("afterwards: %v %v", err, response)
			}
			if got := s.server.count(); got != test.landed+1 {
				t.Errorf("%d requests landed, want %d: %q", got-1, test.landed, s.server.landed)
			}
		})
	}
}

func TestRequestWithoutResponseIsCut(t *testing.T) {
	s := newScene(t)
	responses := make(chan *http.Response, 1)
	s.proxy.Intercept(all, func(x *Exchange) {
		responses <- x.Land()
		x.Forward()
	})
	s.upstream.CloseClientConnections()
	s.upstream.Close()
	if text, _, err := s.ask(t.Context(), http.MethodPatch, unitPath, "patch"); err == nil {
		t.Errorf("it was answered: %s", text)
	}
	if response := <-responses; response != nil {
		t.Errorf("the response is %v, want none", response)
	}
}

func TestRefuseBreaksAllConnectionsUntilHeal(t *testing.T) {
	s := newScene(t)
	lines := s.watch()
	s.proxy.Cut(Refuse)
	if line, err := lines.ReadString('\n'); err == nil {
		t.Errorf("the watch still reports %q after the cut", line)
	}
	if _, _, err := s.ask(t.Context(), http.MethodPatch, unitPath, "lost"); err == nil {
		t.Error("a request got a response during the cut")
	}
	s.proxy.Heal()
	_, _, err := s.ask(t.Context(), http.MethodPatch, unitPath, "healed")
	require.NoError(t, err)
	if got := fmt.Sprint(s.server.landed); got != "[PATCH healed]" {
		t.Errorf("%s requests landed", got)
	}
}

func TestHangDropsDataWithoutAnError(t *testing.T) {
	s := newScene(t)
	lines := s.watch()
	got := make(chan error, 1)
	s.proxy.Cut(Hang)
	go func() {
		_, err := lines.ReadString('\n')
		got <- err
	}()
	s.server.report(t, "unheard")
	for range 2 { // on the existing connection, and perhaps on a new one
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if _, _, err := s.ask(ctx, http.MethodPatch, unitPath, "lost"); err == nil || ctx.Err() == nil {
			t.Errorf("a request did not time out: %v", err)
		}
		cancel()
	}
	select {
	case err := <-got:
		t.Fatalf("the watch got an error during the cut: %v", err)
	default:
	}
	s.proxy.Heal()
	select {
	case err := <-got:
		if err == nil {
			t.Error("the watch continues on a connection that was cut")
		}
	case <-time.After(10 * time.Second):
		t.Error("the watch still hangs after Heal")
	}
	_, _, err := s.ask(t.Context(), http.MethodPatch, unitPath, "healed")
	require.NoError(t, err)
	if got := fmt.Sprint(s.server.landed); got != "[PATCH healed]" {
		t.Errorf("%s requests landed", got)
	}
}
