package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
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
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/pkg/metrics"
	"kube-queue.dev/kube-queue/pkg/program/serving"
	"kube-queue.dev/kube-queue/pkg/program/settings"
)

func TestCommandLine(t *testing.T) {
	tests := []struct {
		name           string
		args           []string
		code           int
		stdout, stderr []string
	}{
		{"--version prints name and version", []string{"--version"}, 0, []string{"thing "}, nil},
		{"--help lists the flags", []string{"--help"}, 0, []string{"--kubeconfig", "--own", "Leader election flags:", "Environment variable: OwnThing"}, nil},
		{"an unknown flag is named and the known ones listed", []string{"--no-such"}, 2, nil,
			[]string{"unknown flag: --no-such", "--kubeconfig", "--own"}},
		{"a stray argument is named", []string{"run"}, 2, nil, []string{`unexpected argument "run"`}},
		{"a value that is no number is refused", []string{"--kube-api-burst=many"}, 2, nil, []string{"kube-api-burst", "many"}},
		{"a rate of 0 is refused", []string{"--kube-api-qps=0"}, 2, nil, []string{"--kube-api-qps: must be a number above 0"}},
		{"a rate that is not a number is refused", []string{"--kube-api-qps=NaN"}, 2, nil, []string{"--kube-api-qps"}},
		{"an unknown log format is refused", []string{"--logging-format=xml"}, 2, nil, []string{"xml"}},
		{"the program's own check is heard", []string{"--own=bad"}, 2, nil, []string{"own is bad"}},
		{"a file that is not there is refused", []string{"--config=/no/such/file"}, 2, nil, []string{"--config", "/no/such/file"}},
		{"an unknown feature is refused with the known ones", []string{"--feature-gates=Nothing=true"}, 2, nil, []string{"Nothing", "OwnFeature"}},
		{"lease times that leave no room for the last write are refused", []string{"--leader-elect-renew-deadline=9s"}, 2, nil, []string{"9s", "15s", "--leader-elect-lease-duration"}},
		{"profiles for everybody are refused", []string{"--profiling-bind-address=:6060"}, 2, nil, []string{"--profiling-bind-address", "loopback"}},
		{"an option of the logs whose feature is off is refused", []string{"--log-json-split-stream"}, 2, nil, []string{"logging.options.json.splitStream", "LoggingAlphaOptions"}},
		{"a kubeconfig that is not there ends with an error", []string{"--kubeconfig=/no/such/file"}, 1, nil, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
			var stdout, stderr bytes.Buffer
			code := run(ownProgram(t), test.args, &stdout, &stderr)
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

// ownProgram has a setting of its own, and never runs.
func ownProgram(t *testing.T) Program {
	var own string
	return Program{
		Name: "thing", Kind: "ThingConfiguration",
		Settings: func(set *settings.Set) {
			set.Group("Own", func(fs *pflag.FlagSet) { fs.StringVar(&own, "own", "", "Own flag.") },
				settings.Setting{Flag: "own", Field: "own", Env: []string{"OwnThing"}})
		},
		Features: map[featuregate.Feature]featuregate.FeatureSpec{"OwnFeature": {PreRelease: featuregate.Alpha}},
		Validate: func() error {
			if own == "bad" {
				return errBad{}
			}
			return nil
		},
		Run: func(context.Context, *Env) error { t.Error("it ran"); return nil },
	}
}

type errBad struct{}

func (errBad) Error() string { return "own is bad" }

func TestTheEnvironmentIsHeard(t *testing.T) {
	p := ownProgram(t)
	p.Environ = []string{"OwnThing=bad"}
	var stdout, stderr bytes.Buffer
	if code := run(p, nil, &stdout, &stderr); code != exitUsage || !strings.Contains(stderr.String(), "own is bad") {
		t.Errorf("exit status %d; stderr:\n%s", code, &stderr)
	}
}

func TestMetricsFlagsThatContradictEachOtherAreRefused(t *testing.T) {
	for _, args := range [][]string{
		{"--tls-cert-file=c"},
		{"--tls-private-key-file=k"},
		{"--tls-cert-file=c", "--tls-private-key-file=k", "--metrics-secure=false"},
	} {
		logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
		var stderr bytes.Buffer
		if code := run(Program{Name: "thing"}, args, io.Discard, &stderr); code != exitUsage || !strings.Contains(stderr.String(), "--tls-cert-file") {
			t.Errorf("%v: status %d, %s", args, code, &stderr)
		}
	}
}

func TestLeaseTimesLeaveRoomForTheLastWrite(t *testing.T) {
	defaults := defaultLease()
	if err := errors.Join(defaults.checkDuration(), defaults.validate()); err != nil {
		t.Error(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) time.Duration {
			return rapid.OneOf(
				rapid.Map(rapid.Int64Range(-1, 60), func(s int64) time.Duration { return time.Duration(s) * time.Second }),
				rapid.Map(rapid.Int64Range(0, 60), func(tenths int64) time.Duration { return time.Duration(tenths) * time.Second / 10 }),
				rapid.Just[time.Duration](math.MaxInt64)).Draw(t, name)
		}
		times := leaseTimes{duration: draw("lease"), renew: draw("renew"), retry: draw("retry")}
		err := errors.Join(times.checkDuration(), above0(times.renew), above0(times.retry), times.validate())
		// What the others go by, and what the writes may need, in numbers that cannot overflow.
		held := float64(int64(times.duration / time.Second))
		needed := renewEvery.Seconds() + times.renew.Seconds() + times.retry.Seconds() + writeTimeout.Seconds()
		switch {
		case err == nil && (times.renew <= 0 || times.retry <= 0 || held <= needed):
			t.Errorf("%+v is accepted", times)
		case err == nil:
			_, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
				LeaseDuration: times.duration, RenewDeadline: times.renew, RetryPeriod: times.retry,
				Lock:      &resourcelock.LeaseLock{LockConfig: resourcelock.ResourceLockConfig{Identity: "me"}},
				Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
			})
			if err != nil {
				t.Errorf("%+v is accepted here and refused there: %v", times, err)
			}
		}
	})
}

func TestALeaseLastsWholeSecondsForTheObjectHoldsNoOthers(t *testing.T) {
	for duration, taken := range map[time.Duration]bool{
		15 * time.Second: true, time.Hour: true,
		0: false, -time.Second: false, 15900 * time.Millisecond: false, time.Second - 1: false, time.Hour + time.Second: false,
	} {
		if err := (&leaseTimes{duration: duration}).checkDuration(); (err == nil) != taken {
			t.Errorf("%v: error is %v", duration, err)
		}
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
	registry := metrics.New("thing", "v1")
	return &Env{Name: "thing", Namespace: "ns", Identity: "me", Config: config, leaderElect: true, lease: defaultLease(), term: newTerm(defaultLease().actFor()),
		Metrics: registry, health: serving.NewHealth(registry.Lead),
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
		for tick := time.Tick(10 * time.Millisecond); !saysReady(standby.health) && ctx.Err() == nil; <-tick {
		}
		if ctx.Err() != nil {
			t.Error("the replica that waits is not ready")
		}
		if saysReady(leader.health) {
			t.Error("the leader is ready before its work says so")
		}
		cancel()
		return <-waiting
	})
	if err != nil {
		t.Fatal(err)
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
