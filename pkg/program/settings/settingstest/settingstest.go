// Package settingstest verifies that each setting of a program can be set by its flag, its
// field and its environment variables, and that the precedence is correct.
package settingstest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/pkg/program/settings"
	"kube-queue.dev/kube-queue/test/require"
)

// Row is the expectation for one setting.
type Row struct {
	Flag, Field string
	// Values are valid values in the syntax of the flag.
	Values []string
	// Env are the environment variables that set it.
	Env []string
	// Environ maps a value to the variables that select it, if there are several.
	Environ map[string][]string
}

// Shared returns the settings that every program has.
func Shared() []Row {
	return []Row{
		{Flag: "namespace", Field: "namespace", Values: []string{"a", "kube-queue"}},
		{Flag: "kubeconfig", Field: "clientConnection.kubeconfig", Values: []string{"/a", "/b"}},
		{Flag: "kube-api-qps", Field: "clientConnection.qps", Values: []string{"1", "0.5", "500"}},
		{Flag: "kube-api-burst", Field: "clientConnection.burst", Values: []string{"1", "7"}},
		{Flag: "leader-elect", Field: "leaderElection.leaderElect", Values: []string{"true", "false"}},
		{Flag: "leader-elect-lease-duration", Field: "leaderElection.leaseDuration", Values: []string{"30s", "1m0s"}},
		{Flag: "leader-elect-renew-deadline", Field: "leaderElection.renewDeadline", Values: []string{"7s", "9.5s"}},
		{Flag: "leader-elect-retry-period", Field: "leaderElection.retryPeriod", Values: []string{"1s", "500ms"}},
		{Flag: "metrics-bind-address", Field: "metrics.bindAddress", Values: []string{"0", ":1", "localhost:2"}},
		{Flag: "metrics-secure", Field: "metrics.secure", Values: []string{"true", "false"}},
		{Flag: "tls-cert-file", Field: "metrics.tlsCertFile", Values: []string{"a.crt", "b.crt"}},
		{Flag: "tls-private-key-file", Field: "metrics.tlsPrivateKeyFile", Values: []string{"a.key", "b.key"}},
		{Flag: "health-bind-address", Field: "health.bindAddress", Values: []string{"0", ":1", "localhost:2"}},
		{Flag: "profiling-bind-address", Field: "profiling.bindAddress", Values: []string{"0", "localhost:6060", "[::1]:6060"}},
		{Flag: "feature-gates", Field: "featureGates", Values: []string{"AllAlpha=true", "AllAlpha=false"}},
		{Flag: "logging-format", Field: "logging.format", Values: []string{"text", "json"}},
		{Flag: "v", Field: "logging.verbosity", Values: []string{"0", "4"}},
		{Flag: "vmodule", Field: "logging.vmodule", Values: []string{"a=1", "b=2,c=3"}},
		{Flag: "log-flush-frequency", Field: "logging.flushFrequency", Values: []string{"1s", "2m0s"}},
		{Flag: "log-text-split-stream", Field: "logging.options.text.splitStream", Values: []string{"true", "false"}},
		{Flag: "log-text-info-buffer-size", Field: "logging.options.text.infoBufferSize", Values: []string{"1Ki", "3M"}},
		{Flag: "log-json-split-stream", Field: "logging.options.json.splitStream", Values: []string{"true", "false"}},
		{Flag: "log-json-info-buffer-size", Field: "logging.options.json.infoBufferSize", Values: []string{"1Ki", "3M"}},
	}
}

// Run tests the settings that declare returns against the rows, which must be complete.
func Run(t *testing.T, declare func() (*settings.Set, error), rows []Row) {
	fresh := func(t rapid.TB) *settings.Set {
		set, err := declare()
		require.NoError(t, err)
		return set
	}
	t.Run("the settings are those of the table", func(t *testing.T) { sameSettings(t, fresh(t), rows) })
	t.Run("a flag overrides a variable, which overrides the file, which overrides the default", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "config")
		rapid.Check(t, func(t *rapid.T) { precedence(t, fresh, rows, file) })
	})
}

func sameSettings(t *testing.T, set *settings.Set, rows []Row) {
	byFlag := map[string]Row{}
	for _, row := range rows {
		byFlag[row.Flag] = row
	}
	for _, setting := range set.All() {
		row, listed := byFlag[setting.Flag]
		if !listed || row.Field != setting.Field || !slices.Equal(row.Env, setting.Env) {
			t.Errorf("--%s has the field %s and the variables %v; in the table it has %q and %v", setting.Flag, setting.Field, setting.Env, row.Field, row.Env)
		}
		if setting.Help == "" {
			t.Errorf("--%s has no help", setting.Flag)
		}
		delete(byFlag, setting.Flag)
	}
	for flag := range byFlag {
		t.Errorf("there is no flag --%s", flag)
	}
}

// want is the expected value and origin of a setting.
type want struct{ text, origin string }

func precedence(t *rapid.T, fresh func(rapid.TB) *settings.Set, rows []Row, file string) {
	fields := map[string]any{"apiVersion": settings.APIVersion, "kind": fresh(t).Kind()}
	var args, environ []string
	wants := map[string]want{}
	for _, row := range rows {
		wants[row.Flag] = want{fresh(t).Lookup(row.Flag).Text(), ""}
		// give draws a value, or none. It overrides the values of earlier sources.
		give := func(source, origin string, by func(text string, alone *settings.Setting)) {
			text := rapid.SampledFrom(append([]string{""}, row.Values...)).Draw(t, row.Flag+" by "+source)
			if text == "" {
				return
			}
			alone := fresh(t)
			require.NoError(t, alone.Read([]string{"--" + row.Flag + "=" + text}, nil))
			wants[row.Flag] = want{alone.Lookup(row.Flag).Text(), origin}
			by(text, alone.Lookup(row.Flag))
		}
		give("file", file+": "+row.Field, func(_ string, alone *settings.Setting) { put(fields, row.Field, alone.Value()) })
		if len(row.Env) > 0 {
			give("variable", "environment variable", func(text string, _ *settings.Setting) { environ = append(environ, row.environ(text)...) })
		}
		give("flag", "--"+row.Flag, func(text string, _ *settings.Setting) { args = append(args, "--"+row.Flag+"="+text) })
	}
	write(t, file, fields)
	set := fresh(t)
	require.NoError(t, set.Read(append(args, "--config="+file), environ))
	for flag, want := range wants {
		setting := set.Lookup(flag)
		if setting.Text() != want.text || !strings.HasPrefix(setting.Origin(), want.origin) || (setting.Origin() == "") != (want.origin == "") {
			t.Errorf("--%s is %q from %q, want %q from %q", flag, setting.Text(), setting.Origin(), want.text, want.origin)
		}
	}
}

func (r Row) environ(text string) []string {
	if r.Environ != nil {
		return r.Environ[text]
	}
	return []string{r.Env[0] + "=" + text}
}

// put adds a field to the sections that its path names.
func put(fields map[string]any, path string, value any) {
	section, rest, nested := strings.Cut(path, ".")
	if !nested {
		fields[path] = value
		return
	}
	if fields[section] == nil {
		fields[section] = map[string]any{}
	}
	put(fields[section].(map[string]any), rest, value)
}

func write(t *rapid.T, file string, fields map[string]any) {
	data, err := json.Marshal(fields)
	if err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	require.NoError(t, err)
}
