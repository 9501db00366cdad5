// Package cmd holds tests of the programs as they are built; they need no cluster.
package cmd

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	// The programs are built from these packages. The imports make the test cache notice changes.
	_ "kube-queue.dev/kube-queue/cmd/job-extensions/options"
	_ "kube-queue.dev/kube-queue/cmd/kube-queue-controller/options"
	_ "kube-queue.dev/kube-queue/cmd/kube-queue-web/options"
	_ "kube-queue.dev/kube-queue/pkg/controller"
	_ "kube-queue.dev/kube-queue/pkg/plugin/access"
	"kube-queue.dev/kube-queue/test/freeport"
	"kube-queue.dev/kube-queue/test/require"
)

const (
	controller = "kube-queue-controller"
	extensions = "job-extensions"
	pages      = "kube-queue-web"
	patience   = time.Minute
)

// programs is the folder of the programs under test.
var programs string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "kube-queue-programs-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	programs = dir
	if out, err := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "./"+controller, "./"+extensions, "./"+pages).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the programs: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

func write(t *testing.T, name string, content any) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	data, err := json.Marshal(content)
	if err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	require.NoError(t, err)
	return file
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := freeport.Address()
	require.NoError(t, err)
	return address
}

// start runs a program until the test ends, and returns its log.
func start(t *testing.T, name string, environ []string, args ...string) (logged func() string, ended <-chan struct{}) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	cmd := exec.Command(filepath.Join(programs, name), args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = environ, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
		log.Close()
	})
	return func() string {
		data, err := os.ReadFile(log.Name())
		require.NoError(t, err)
		return string(data)
	}, done
}

// line returns the line of a JSON log with this message.
func line(log, message string) map[string]any {
	for text := range strings.Lines(log) {
		var fields map[string]any
		if json.Unmarshal([]byte(text), &fields) == nil && fields["msg"] == message {
			return fields
		}
	}
	return nil
}

// eventually waits until the condition is met while the program runs.
func eventually(t *testing.T, what string, logged func() string, ended <-chan struct{}, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for tick := time.Tick(20 * time.Millisecond); !so(); {
		select {
		case <-tick:
		case <-ended:
			t.Fatalf("the program has ended before %s:\n%s", what, logged())
		case <-ctx.Done():
			t.Fatalf("%s: not within %v:\n%s", what, patience, logged())
		}
	}
}

func TestAProgramObeysItsFlagsThenItsEnvironmentThenItsFile(t *testing.T) {
	for _, c := range []struct {
		program, kind string
		file          map[string]any
		environ, args []string
		// settings are the settings in force, and given their origins, as the log shows them.
		settings, given map[string]any
		// starts are fields of the log line at the start.
		starts map[string]any
	}{
		{
			controller, "KubeQueueControllerConfiguration",
			map[string]any{"quotaBackend": "elasticquota", "policy": "Priority", "oversellRate": 1.5, "workers": 3},
			[]string{"QueueGroupPlugin=ResourceQuota", "StrictPriority=true"}, []string{"--workers=5", "--quota-backend=elasticquota"},
			map[string]any{"quotaBackend": "elasticquota", "policy": "Block", "oversellRate": "1.5", "workers": 5.0, "pauseBorrowing": true},
			map[string]any{"quotaBackend": "--quota-backend", "policy": "environment variable StrictPriority", "oversellRate": "FILE: oversellRate", "workers": "--workers"},
			map[string]any{"quotaBackend": "elasticquota", "policy": "Block", "oversellRate": "1.5"},
		},
		{
			extensions, "JobExtensionsConfiguration",
			map[string]any{"enabledExtensions": []string{"job", "jobset"}, "workers": 3},
			[]string{"QueueGroupPlugin=ResourceQuota"}, []string{"--workers=5"},
			map[string]any{"enabledExtensions": []any{"job", "jobset"}, "workers": 5.0},
			map[string]any{"enabledExtensions": "FILE: enabledExtensions", "workers": "--workers"},
			map[string]any{"enabledExtensions": []any{"job", "jobset"}, "workers": 5.0},
		},
	} {
		t.Run(c.program, func(t *testing.T) {
			s := newServer(t)
			unused, health := freeAddress(t), freeAddress(t)
			c.file["apiVersion"], c.file["kind"] = "config.kube-queue.dev/v1alpha1", c.kind
			c.file["namespace"] = "elsewhere"
			c.file["clientConnection"] = map[string]any{"kubeconfig": s.kubeconfig(t)}
			c.file["leaderElection"] = map[string]any{"leaseDuration": "21s"}
			c.file["health"] = map[string]any{"bindAddress": unused}
			c.file["metrics"] = map[string]any{"bindAddress": "0"}
			c.file["logging"] = map[string]any{"format": "json"}
			file := write(t, "config", c.file)
			logged, ended := start(t, c.program, c.environ, append(c.args, "--config", file, "--health-bind-address", health)...)

			var inForce, starts map[string]any
			eventually(t, "it starts", logged, ended, func() bool {
				inForce, starts = line(logged(), "Settings in force"), line(logged(), "The program starts")
				return starts != nil
			})
			includes(t, inForce["settings"], c.settings, file)
			includes(t, inForce["given"], c.given, file)
			includes(t, inForce["given"], map[string]any{"namespace": "FILE: namespace", "health.bindAddress": "--health-bind-address"}, file)
			includes(t, starts, c.starts, file)
			if reported := strings.Contains(logged(), "An environment variable has no effect"); reported != (c.program == extensions) {
				t.Errorf("a variable without effect is reported: %t", reported)
			}
			eventually(t, "it is healthy where the flag says", logged, ended, func() bool { return answers("http://" + health + "/healthz") })
			if answers("http://" + unused + "/healthz") {
				t.Error("it answers where the file says as well")
			}
			if c.program == controller { // the other one would list objects that this server does not have
				eventually(t, "it takes the lease", logged, ended, func() bool { return s.taken("elsewhere") != nil })
				if seconds := *s.taken("elsewhere"); seconds != 21 {
					t.Errorf("it takes the lease for %d s", seconds)
				}
			}
		})
	}
}

func includes(t *testing.T, is any, want map[string]any, file string) {
	t.Helper()
	fields, _ := is.(map[string]any)
	for name, want := range want {
		if text, ok := want.(string); ok {
			want = strings.Replace(text, "FILE", file, 1)
		}
		if fmt.Sprintf("%#v", fields[name]) != fmt.Sprintf("%#v", want) {
			t.Errorf("%s is %#v, want %#v", name, fields[name], want)
		}
	}
}

func answers(url string) bool {
	response, err := http.Get(url)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// It needs no kubeconfig, no ServiceAccount, and no API server that answers.
func TestThePagesAreServedWithoutRights(t *testing.T) {
	unused := httptest.NewTLSServer(http.NotFoundHandler())
	unused.Close()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: unused.Certificate().Raw}), 0o600))
	address, health := freeAddress(t), freeAddress(t)
	logged, ended := start(t, pages, nil, "--hosts="+address, "--server="+unused.URL, "--certificate-authority="+ca, "--bind-address="+address, "--health-bind-address="+health)
	eventually(t, "it is ready", logged, ended, func() bool { return answers("http://" + health + "/readyz") })
	for token, want := range map[string]int{"": http.StatusUnauthorized, "Bearer secret-of-jane": http.StatusBadGateway} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address, nil)
		require.NoError(t, err)
		request.Header.Set("Authorization", token)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("with token %q: status %d, want %d", token, response.StatusCode, want)
		}
	}
	if strings.Contains(logged(), "secret-of-jane") {
		t.Errorf("the log has a token:\n%s", logged())
	}
}
