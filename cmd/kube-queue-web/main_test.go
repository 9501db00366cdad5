package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"kube-queue.dev/kube-queue/cmd/kube-queue-web/options"
	"kube-queue.dev/kube-queue/pkg/plugin/web"
	"kube-queue.dev/kube-queue/pkg/program"
	"kube-queue.dev/kube-queue/test/require"
)

// api is an API server that knows the tokens a and b, and answers each with a different job.
type api struct {
	mu sync.Mutex
	// seen are the headers of the requests.
	seen []http.Header
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.seen = append(a.seen, r.Header)
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if token != "a" && token != "b" {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Unauthorized", "code": 401}`)
		return
	}
	if !strings.HasSuffix(r.URL.Path, "/queuereviews") {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}`)
		return
	}
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "visibility.kube-queue.dev/v1alpha1", "kind": "QueueReview", "status": map[string]any{
		"observedTime": "2026-01-01T12:00:00.000000Z", "total": 1, "units": []any{map[string]any{"namespace": "default", "name": "job-of-" + token, "phase": "Enqueued"}}}})
}

// headers returns the headers of the requests since the last call.
func (a *api) headers() []http.Header {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := a.seen
	a.seen = nil
	return seen
}

const host = "queue.example.com"

// start returns the pages, and an API server for which the program has its own credentials.
func start(t *testing.T) (*api, *web.Server) {
	t.Helper()
	a := &api{}
	server := httptest.NewTLSServer(a)
	t.Cleanup(server.Close)
	folder := t.TempDir()
	ca, token := filepath.Join(folder, "ca.crt"), filepath.Join(folder, "token")
	for file, text := range map[string]string{ca: pemOf(server), token: "own"} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	opts, err := read("--hosts="+host, "--server="+server.URL, "--certificate-authority="+ca)
	require.NoError(t, err)
	return a, newPages(&rest.Config{Host: opts.Server, TLSClientConfig: rest.TLSClientConfig{CAFile: opts.CAFile}, BearerToken: "own", BearerTokenFile: token,
		Username: "own", Password: "own", Impersonate: rest.ImpersonationConfig{UserName: "own"}}, opts)
}

func read(args ...string) (*options.Options, error) {
	opts := options.New()
	p := opts.Program()
	set, err := program.Settings(p)
	if err != nil {
		return nil, err
	}
	if err := set.Read(args, []string{"KUBERNETES_SERVICE_HOST=192.0.2.1", "KUBERNETES_SERVICE_PORT=6443"}); err != nil {
		return nil, err
	}
	return opts, p.Validate()
}

// ask sends a request with these headers, including Host, and returns the answer.
func ask(pages *web.Server, method, target, form string, headers http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(form))
	r.Host = host
	for name, values := range headers {
		r.Header[name] = values
	}
	if other := headers.Get("Host"); other != "" {
		r.Host = other
	}
	if form != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	pages.ServeHTTP(w, r)
	return w
}

func pemOf(server *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

func bearer(token string) []string { return []string{"Bearer " + token} }

func TestWithoutATokenNothingIsShown(t *testing.T) {
	a, pages := start(t)
	for _, given := range [][]string{nil, {""}, {"Bearer"}, {"Bearer "}, {"Basic YTpi"}, {"a"}, {"Bearer a", "Bearer b"}} {
		for _, target := range []string{"/", "/quotas", "/assets/style.css", "/live?page=/", "/open?ticket=", "/nothing"} {
			w := ask(pages, http.MethodGet, target, "", http.Header{"Authorization": given, "Cookie": {"kube-queue-=x"}})
			if w.Code != http.StatusUnauthorized || strings.Contains(w.Body.String(), "<") || w.Header().Get("Www-Authenticate") != "Bearer" {
				t.Errorf("%q %s: status %d: %s", given, target, w.Code, w.Body)
			}
		}
	}
	if seen := a.headers(); len(seen) > 0 {
		t.Errorf("the API server got %v", seen)
	}
}

func TestTheAPIServerGetsTheTokenOfTheRequestAndNothingElse(t *testing.T) {
	a, pages := start(t)
	for range 3 {
		for token, other := range map[string]string{"a": "b", "b": "a"} {
			w := ask(pages, http.MethodGet, "/", "", http.Header{"Authorization": bearer(token), "Impersonate-User": {"admin"}, "Impersonate-Group": {"system:masters"}, "X-Remote-User": {"admin"},
				"Cookie": {"session=x"}, "X-Forwarded-For": {"192.0.2.7"}, "X-Forwarded-Access-Token": {other}, "Accept-Language": {"de"}})
			if body := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(body, "job-of-"+token) || strings.Contains(body, "job-of-"+other) {
				t.Fatalf("token %s: status %d:\n%s", token, w.Code, body)
			}
			seen := a.headers()
			if len(seen) == 0 {
				t.Error("the answer is not from the API server")
			}
			for _, headers := range seen {
				if got := headers.Get("Authorization"); got != "Bearer "+token {
					t.Errorf("the API server got %q with token %s", got, token)
				}
				for name := range headers {
					switch name {
					case "Authorization", "User-Agent", "Accept", "Accept-Encoding", "Content-Type", "Content-Length":
					default:
						t.Errorf("the API server got header %s: %q", name, headers[name])
					}
				}
			}
		}
	}
	for _, target := range []string{"/", "/quotas", "/live?page=/"} {
		if w := ask(pages, http.MethodGet, target, "", http.Header{"Authorization": bearer("revoked")}); w.Code != http.StatusUnauthorized || strings.Contains(w.Body.String(), "job-of-") {
			t.Errorf("%s with a token that the API server does not accept: status %d:\n%s", target, w.Code, w.Body)
		}
	}
}

func TestOtherHostsOriginsAndLargeFormsAreRefused(t *testing.T) {
	a, pages := start(t)
	for _, c := range []struct {
		name, method, target, form string
		headers                    http.Header
		want                       int
	}{
		{"another host", http.MethodGet, "/", "", http.Header{"Host": {"evil.example"}}, http.StatusMisdirectedRequest},
		{"another port", http.MethodGet, "/", "", http.Header{"Host": {host + ":1"}}, http.StatusMisdirectedRequest},
		{"an action of another site", http.MethodPost, "/act", "do=stop&queue=q", http.Header{"Sec-Fetch-Site": {"cross-site"}}, http.StatusForbidden},
		{"an action of another origin", http.MethodPost, "/act", "do=stop&queue=q", http.Header{"Origin": {"https://evil.example"}}, http.StatusForbidden},
		{"a what-if of another origin", http.MethodPost, "/what-if", "manifests=x", http.Header{"Origin": {"https://evil.example"}}, http.StatusForbidden},
		{"a form that is too large", http.MethodPost, "/what-if", "manifests=" + strings.Repeat("x", web.MostForm), nil, http.StatusRequestEntityTooLarge},
		{"a link to log in", http.MethodGet, "/open?ticket=", "", nil, http.StatusNotFound},
	} {
		headers := http.Header{"Authorization": bearer("a")}
		for name, values := range c.headers {
			headers[name] = values
		}
		w := ask(pages, c.method, c.target, c.form, headers)
		if w.Code != c.want || w.Header().Get("Set-Cookie") != "" || !strings.HasPrefix(w.Header().Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: status %d, want %d: %v", c.name, w.Code, c.want, w.Header())
		}
	}
	if seen := a.headers(); len(seen) > 0 {
		t.Errorf("the API server got %v", seen)
	}
	headers := http.Header{"Authorization": bearer("a"), "Origin": {"https://" + host}}
	if w := ask(pages, http.MethodPost, "/act", "do=stop&queue=q", headers); w.Code != http.StatusForbidden || len(a.headers()) == 0 {
		t.Errorf("an own form does not reach the API server: status %d", w.Code)
	}
}

func TestSettings(t *testing.T) {
	if opts, err := read("--hosts=a.example,b.example:8443"); err != nil || opts.Server != "https://192.0.2.1:6443" || len(opts.Hosts()) != 2 {
		t.Errorf("%+v, %v", opts, err)
	}
	for want, args := range map[string][]string{
		"--hosts":         nil,
		"--server":        {"--hosts=a", "--server=http://192.0.2.1"},
		"--tls-cert-file": {"--hosts=a", "--tls-cert-file=c"},
		"--bind-address":  {"--hosts=a", "--bind-address=0"},
	} {
		if _, err := read(args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", args, err)
		}
	}
}
