package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	logsapi "k8s.io/component-base/logs/api/v1"
)

func TestCommandLine(t *testing.T) {
	tests := []struct {
		name           string
		args           []string
		code           int
		stdout, stderr []string
	}{
		{"--version prints name and version", []string{"--version"}, 0, []string{"thing "}, nil},
		{"--help lists the flags", []string{"--help"}, 0, []string{"--kubeconfig", "--own"}, nil},
		{"an unknown flag is named and the known ones listed", []string{"--no-such"}, 2, nil,
			[]string{"unknown flag: --no-such", "--kubeconfig", "--own"}},
		{"a stray argument is named", []string{"run"}, 2, nil, []string{`unexpected argument "run"`}},
		{"a value that is no number is refused", []string{"--kube-api-burst=many"}, 2, nil, []string{"kube-api-burst", "many"}},
		{"a rate of 0 is refused", []string{"--kube-api-qps=0"}, 2, nil, []string{"--kube-api-qps must be a number above 0"}},
		{"a rate that is not a number is refused", []string{"--kube-api-qps=NaN"}, 2, nil, []string{"--kube-api-qps"}},
		{"an unknown log format is refused", []string{"--logging-format=xml"}, 2, nil, []string{"xml"}},
		{"the program's own check is heard", []string{"--own=bad"}, 2, nil, []string{"own is bad"}},
		{"a kubeconfig that is not there ends with an error", []string{"--kubeconfig=/no/such/file"}, 1, nil, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
			var stdout, stderr bytes.Buffer
			var own string
			code := run(Program{
				Name:  "thing",
				Flags: func(fs *pflag.FlagSet) { fs.StringVar(&own, "own", "", "Own flag.") },
				Validate: func() error {
					if own == "bad" {
						return errBad{}
					}
					return nil
				},
				Run: func(context.Context, *Env) error { t.Error("it ran"); return nil },
			}, test.args, &stdout, &stderr)
			if code != test.code {
				t.Errorf("exit status %d, want %d; stderr:\n%s", code, test.code, &stderr)
			}
			for _, want := range test.stdout {
				if !strings.Contains(stdout.String(), want) {
					t.Errorf("stdout lacks %q:\n%s", want, &stdout)
				}
			}
			for _, want := range test.stderr {
				if !strings.Contains(stderr.String(), want) {
					t.Errorf("stderr lacks %q:\n%s", want, &stderr)
				}
			}
		})
	}
}

type errBad struct{}

func (errBad) Error() string { return "own is bad" }

func TestLeaseTimesLeaveRoomForTheLastWrite(t *testing.T) {
	if actFor+writeTimeout >= leaseDuration {
		t.Errorf("a write could arrive after the lease has run out")
	}
}

func TestWritesCarryADeadlineAndReadsDoNot(t *testing.T) {
	for method, want := range map[string]string{"GET": "", "POST": "4s", "PATCH": "4s", "DELETE": "4s"} {
		t.Run(method, func(t *testing.T) {
			var got string
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
				got = req.URL.Query().Get("timeout")
			}))
			defer server.Close()
			req, err := http.NewRequestWithContext(t.Context(), method, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := writeDeadline(http.DefaultTransport).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if got != want {
				t.Errorf("timeout %q, want %q", got, want)
			}
		})
	}
}

func TestReadyOnlyOnceMarked(t *testing.T) {
	h := newHealth()
	status := func(path string) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code
	}
	if got := status("/healthz"); got != http.StatusOK {
		t.Errorf("healthz: %d", got)
	}
	if got := status("/readyz"); got != http.StatusServiceUnavailable {
		t.Errorf("readyz before caches have synced: %d", got)
	}
	h.markReady()
	if got := status("/readyz"); got != http.StatusOK {
		t.Errorf("readyz after: %d", got)
	}
}

func TestConfigComesFromTheNamedFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	content := `{"apiVersion":"v1","kind":"Config","current-context":"c",
		"contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],
		"clusters":[{"name":"k","cluster":{"server":"https://there:1"}}],"users":[{"name":"u","user":{}}]}`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	opts := defaultOptions()
	opts.kubeconfig = file
	env, err := newEnv("thing", opts)
	if err != nil {
		t.Fatal(err)
	}
	if env.Config.Host != "https://there:1" || env.Config.QPS != 500 || env.Config.Burst != 1000 || !strings.HasPrefix(env.Config.UserAgent, "thing/") {
		t.Errorf("config is %+v", env.Config)
	}
}

// leaseServer stands in for the API server's leases, to fail when told to.
type leaseServer struct {
	mu     sync.Mutex
	lease  map[string]any
	broken atomic.Bool
}

func (s *leaseServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if s.broken.Load() {
		http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}`, http.StatusInternalServerError)
		return
	}
	if req.Method == http.MethodGet && s.lease == nil {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
		return
	}
	if req.Method != http.MethodGet {
		s.lease = nil
		_ = json.NewDecoder(req.Body).Decode(&s.lease)
	}
	_ = json.NewEncoder(w).Encode(s.lease)
}

func (s *leaseServer) holder() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	spec, _ := s.lease["spec"].(map[string]any)
	holder, _ := spec["holderIdentity"].(string)
	return holder
}

func leaseEnv(t *testing.T, server *leaseServer) *Env {
	t.Helper()
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	config := &rest.Config{Host: web.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	if _, err := kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	return &Env{Name: "thing", Namespace: "ns", Identity: "me", Config: config, leaderElect: true, health: newHealth(), term: newTerm(),
		exit: func(int) { t.Error("the process was ended") }}
}

func TestLeaseIsReleasedAfterTheWorkHasStopped(t *testing.T) {
	server := &leaseServer{}
	env := leaseEnv(t, server)
	ctx, cancel := context.WithCancel(t.Context())
	err := env.Lead(ctx, func(ctx context.Context) error {
		if server.holder() != "me" {
			t.Errorf("the lease is held by %q while working", server.holder())
		}
		cancel()
		<-ctx.Done()
		if server.holder() != "me" {
			t.Errorf("the lease was given up before the work had stopped")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if server.holder() != "" {
		t.Errorf("the lease is still held by %q", server.holder())
	}
}

func TestAReplicaThatWaitsForTheLeaseIsReady(t *testing.T) {
	server := &leaseServer{}
	leader, standby := leaseEnv(t, server), leaseEnv(t, server)
	standby.Identity = "another"
	err := leader.Lead(t.Context(), func(context.Context) error {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		waiting := make(chan error, 1)
		go func() {
			waiting <- standby.Lead(ctx, func(context.Context) error { return errors.New("two lead") })
		}()
		for tick := time.Tick(10 * time.Millisecond); !standby.health.ready.Load() && ctx.Err() == nil; <-tick {
		}
		if ctx.Err() != nil {
			t.Error("the replica that waits is not ready")
		}
		cancel()
		return <-waiting
	})
	if err != nil {
		t.Fatal(err)
	}
	if leader.health.ready.Load() {
		t.Error("the leader is ready before its work says so")
	}
}

func TestLostLeaseEndsTheProcess(t *testing.T) {
	server := &leaseServer{}
	env := leaseEnv(t, server)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	env.exit = func(code int) {
		ended <- code
		cancel()
	}
	begin := time.Now()
	_ = env.Lead(ctx, func(ctx context.Context) error {
		server.broken.Store(true)
		<-ctx.Done()
		return nil
	})
	if code := <-ended; code != exitError {
		t.Errorf("exit status %d", code)
	}
	if took := time.Since(begin); took > leaseDuration-writeTimeout+time.Second {
		t.Errorf("it took %v", took)
	}
}
