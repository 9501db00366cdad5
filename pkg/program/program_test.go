package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"

	"kube-queue.dev/kube-queue/pkg/program/settings"
	"kube-queue.dev/kube-queue/test/require"
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
		{"an unknown flag is named with the one that was meant", []string{"--kubeconfg=x"}, 2, nil,
			[]string{"unknown flag: --kubeconfg\nDid you mean --kubeconfig?\nSee 'thing --help' for usage.\n"}},
		{"an unknown flag may be a former one", []string{"--podInitialBackoffSeconds=1"}, 2, nil, []string{"For the flags of ack-kube-queue, see docs/migration/from-ack-kube-queue.md."}},
		{"a stray argument is named", []string{"run"}, 2, nil, []string{`unexpected argument "run"`}},
		{"a value that is no number is refused", []string{"--kube-api-burst=many"}, 2, nil, []string{"kube-api-burst", "many"}},
		{"a rate of 0 is refused", []string{"--kube-api-qps=0"}, 2, nil, []string{"--kube-api-qps: must be a number greater than 0"}},
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
			require.Says(t, "stdout", stdout.String(), test.stdout...)
			require.Says(t, "stderr", stderr.String(), test.stderr...)
		})
	}
}

// ownProgram has a setting of its own, and never runs.
func ownProgram(t *testing.T) Program {
	var own string
	return Program{
		Name: "thing", Kind: "ThingConfiguration",
		Settings: func(set *settings.Set) {
			set.Group("Own", settings.Setting{Var: &own, Flag: "own", Field: "own", Help: "Own flag.", Env: []string{"OwnThing"}})
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

func TestACheckDoesNotAwaitTheUnits(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.HasPrefix(req.URL.Path, "/openapi") {
			t.Error("it asks for the CRD")
			http.NotFound(w, req) // it would not wait
			return
		}
		_, _ = io.WriteString(w, `{}`)
	}))
	defer web.Close()
	ran := false
	p := Program{Name: "thing", NeedsNoUnits: func() bool { return true }, Run: func(context.Context, *Env) error { ran = true; return nil }}
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	args := []string{"--kubeconfig=" + kubeconfig(t, web.URL), "--health-bind-address=0", "--metrics-bind-address=0"}
	if code := run(p, args, io.Discard, io.Discard); code != exitClean || !ran {
		t.Errorf("exit status %d, ran %t", code, ran)
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

func TestConfigComesFromTheNamedFile(t *testing.T) {
	env := envOf(t, "https://there:1")
	if env.Config.Host != "https://there:1" || env.Config.RateLimiter.QPS() != 500 || !strings.HasPrefix(env.Config.UserAgent, "thing/") {
		t.Errorf("config is %+v", env.Config)
	}
}

func TestAnErrorIsNotTakenForTheEndThatWasRequested(t *testing.T) {
	broken := errors.New("an invariant is broken")
	for _, c := range []struct {
		err  error
		want bool
	}{
		{context.Canceled, true},
		{fmt.Errorf("listing units: %w", context.Canceled), true},
		{errors.Join(context.Canceled, fmt.Errorf("waiting: %w", context.Canceled)), true},
		{broken, false},
		{errors.Join(nil, context.Canceled, broken), false},
		{fmt.Errorf("deciding: %w", errors.Join(context.Canceled, broken)), false},
	} {
		if got := isStop(c.err); got != c.want {
			t.Errorf("%q: %t, want %t", c.err, got, c.want)
		}
	}
}

func TestAnAPIServerThatDoesNotAnswerDoesNotDelayTheEnd(t *testing.T) {
	asked := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&Env{Config: &rest.Config{Host: server.URL}}).connect(ctx) }()
	<-asked
	cancel()
	select {
	case err := <-ended:
		if !isStop(err) {
			t.Errorf("the error is %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits for the answer")
	}
}
