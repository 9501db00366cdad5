package options

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kube-queue.dev/kube-queue/pkg/program"
	"kube-queue.dev/kube-queue/pkg/program/settings"
	"kube-queue.dev/kube-queue/pkg/program/settings/settingstest"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/requests"
	"kube-queue.dev/kube-queue/test/require"
)

func TestEachSettingIsSetByItsFlagItsVariablesAndItsField(t *testing.T) {
	settingstest.Run(t, func() (*settings.Set, error) { return program.Settings(New().Program()) },
		append(settingstest.Shared(),
			settingstest.Row{Flag: "quota-backend", Field: "quotaBackend", Env: []string{"QueueGroupPlugin"}, Values: []string{"elasticquota", "ResourceQuota"}},
			settingstest.Row{Flag: "oversell-rate", Field: "oversellRate", Values: []string{"1.0", "1.25", "2"}},
			settingstest.Row{Flag: "reclaim", Field: "reclaim", Values: []string{"true", "false"}},
			settingstest.Row{Flag: "pause-borrowing", Field: "pauseBorrowing", Values: []string{"true", "false"}},
			settingstest.Row{Flag: "count-unqueued-pods", Field: "countUnqueuedPods", Values: []string{"true", "false"}},
			settingstest.Row{Flag: "unrenewed-unit-timeout", Field: "unrenewedUnitTimeout", Values: []string{"24h0m0s", "0s", "1m0s"}},
			settingstest.Row{Flag: "policy", Field: "policy", Values: []string{"RoundRobin", "Priority", "Block"},
				Env: []string{"StrictPriority", "StrictConsistency"}, Environ: map[string][]string{
					"RoundRobin": {"StrictPriority=false"}, "Priority": {"StrictConsistency=true"}, "Block": {"StrictPriority=true", "StrictConsistency=true"}}},
			settingstest.Row{Flag: "backoff-initial", Field: "backoff.initial", Values: []string{"2s", "1ms"}},
			settingstest.Row{Flag: "backoff-max", Field: "backoff.max", Values: []string{"2m0s", "1s"}},
			settingstest.Row{Flag: "device-classes", Field: "devices.classes", Values: []string{"a=example.com/gpu", "a=example.com/gpu,b="}},
			settingstest.Row{Flag: "device-types", Field: "devices.types", Values: []string{"example.com/gpu::gpu/other", "example.com/gpu:model=h100:gpu/h100,example.com/gpu:model=:gpu/a"}},
			settingstest.Row{Flag: "workers", Field: "workers", Values: []string{"1", "9"}},
			settingstest.Row{Flag: "status-interval", Field: "statusInterval", Values: []string{"200ms", "1h0m0s"}},
			settingstest.Row{Flag: "webhook-bind-address", Field: "webhook.bindAddress", Values: []string{":9443", "127.0.0.1:1"}},
			settingstest.Row{Flag: "webhook-manage-certificate", Field: "webhook.manageCertificate", Values: []string{"false"}},
			settingstest.Row{Flag: "webhook-advertise-address", Field: "webhook.advertiseAddress", Values: []string{"192.0.2.1:9443", "[192.0.2.1]:9443", "[2001:db8::1]:9443"}},
			settingstest.Row{Flag: "webhook-client-ca-file", Field: "webhook.clientCAFile", Values: []string{"/etc/ca.crt"}},
			settingstest.Row{Flag: "check-invariants", Field: "checkInvariants", Values: []string{"true", "false"}}))
}

// read returns the options for a command line and an environment.
func read(t *testing.T, environ []string, args ...string) (*Options, error) {
	t.Helper()
	o := New()
	p := o.Program()
	set, err := program.Settings(p)
	require.NoError(t, err)
	if err := set.Read(args, environ); err != nil {
		return nil, err
	}
	return o, p.Validate()
}

func TestPolicyByEnvironment(t *testing.T) {
	for _, c := range []struct {
		name string
		env  []string
		want *queue.Policy
	}{
		{"nothing set means RoundRobin", nil, queue.RoundRobin},
		{"StrictPriority means Block", []string{"StrictPriority=true"}, queue.Block},
		{"StrictConsistency means Priority", []string{"StrictConsistency=true"}, queue.Priority},
		{"both mean Block", []string{"StrictPriority=true", "StrictConsistency=true"}, queue.Block},
		{"false and empty are as good as unset", []string{"StrictPriority=false", "StrictConsistency="}, queue.RoundRobin},
		{"case does not matter", []string{"StrictPriority=True"}, queue.Block},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, err := read(t, c.env)
			if err != nil || o.Policy != c.want {
				t.Fatalf("policy %q, error %v; want %q", o.Policy, err, c.want)
			}
		})
	}
}

func TestSettingsThatAreNotKnownAreRefusedWithWhatIs(t *testing.T) {
	for _, c := range []struct {
		name, env, arg string
		words          []string
	}{
		{"an unknown quota backend", "QueueGroupPlugin=elasticquotav2", "", []string{"QueueGroupPlugin", "elasticquotav2", "elasticquota, resourcequota"}},
		{"one that a flag goes before", "QueueGroupPlugin=elasticquotav2", "--quota-backend=elasticquota", []string{"QueueGroupPlugin", "elasticquotav2"}},
		{"an unknown quota backend by flag", "", "--quota-backend=none", []string{"--quota-backend", "none", "elasticquota, resourcequota"}},
		{"no quota backend", "", "--quota-backend=", []string{"--quota-backend", "elasticquota, resourcequota"}},
		{"an unknown boolean", "StrictPriority=yes please", "", []string{"StrictPriority", "yes please", "true or false"}},
		{"the other unknown boolean", "StrictConsistency=2", "", []string{"StrictConsistency"}},
		{"an unknown policy", "", "--policy=FIFO", []string{"--policy", "FIFO", "RoundRobin, Priority, Block"}},
		{"a rate that is no decimal", "", "--oversell-rate=much", []string{"--oversell-rate", "much"}},
		{"a rate of zero", "", "--oversell-rate=0", []string{"--oversell-rate"}},
		{"a negative rate", "", "--oversell-rate=-1", []string{"--oversell-rate"}},
		{"no worker", "", "--workers=0", []string{"--workers"}},
		{"no time between two statuses", "", "--status-interval=0s", []string{"--status-interval"}},
		{"a backoff that is none", "", "--backoff-initial=0s", []string{"--backoff-initial", "greater than 0"}},
		{"a backoff of years", "", "--backoff-max=100000h", []string{"--backoff-max", "24h"}},
		{"a first backoff above the longest", "", "--backoff-initial=21s", []string{"--backoff-initial", "21s", "--backoff-max", "20s"}},
		{"a type of devices without a rule", "", "--device-types=example.com/gpu:h100", []string{"--device-types", "example.com/gpu:h100", "RESOURCE:LABEL=VALUE:TYPE"}},
		{"a class of devices without a resource", "", "--device-classes=gpu.example.com", []string{"--device-classes", "gpu.example.com", "CLASS=RESOURCE"}},
		{"an unknown feature", "", "--feature-gates=InvariantAudit=false,Nothing=true", []string{"--feature-gates", "Nothing", "InvariantAudit"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := slices.DeleteFunc([]string{c.arg}, func(arg string) bool { return arg == "" })
			_, err := read(t, []string{c.env}, args...)
			require.ErrorSays(t, err, c.words...)
		})
	}
}

// With reclaim, borrowing is paused as well if no job can be evicted, and the flag --pause-borrowing has no effect.
func TestReclaimAndPausedBorrowingAreOnUnlessTheyAreSwitchedOff(t *testing.T) {
	for _, c := range []struct {
		args           []string
		reclaim, pause bool
	}{
		{nil, true, true},
		{[]string{"--reclaim"}, true, true},
		{[]string{"--reclaim=false"}, false, true},
		{[]string{"--pause-borrowing"}, true, true},
		{[]string{"--pause-borrowing=false"}, true, false},
	} {
		o, err := read(t, nil, c.args...)
		if err != nil || o.Reclaim != c.reclaim || o.PauseBorrowing != c.pause {
			t.Fatalf("%v: reclaim %t, paused %t, error %v", c.args, o.Reclaim, o.PauseBorrowing, err)
		}
		if shown, want := fmt.Sprintln(o.inForce()...), fmt.Sprintf("reclaim %t pauseBorrowing %t", c.reclaim, c.pause); !strings.Contains(shown, want) {
			t.Errorf("%v: in force is %s", c.args, shown)
		}
	}
}

func TestBackoffIsWhatWasSet(t *testing.T) {
	for _, c := range []struct {
		args []string
		want queue.Backoff
	}{
		{nil, queue.DefaultBackoff()},
		{[]string{"--backoff-max=1m"}, queue.Backoff{Initial: time.Second, Max: time.Minute}},
		{[]string{"--backoff-initial=2s", "--backoff-max=2s"}, queue.Backoff{Initial: 2 * time.Second, Max: 2 * time.Second}},
	} {
		if o, err := read(t, nil, c.args...); err != nil || o.Backoff != c.want {
			t.Errorf("%v: %v, error %v", c.args, o.Backoff, err)
		}
	}
}

func TestTheRulesForDevicesAreRead(t *testing.T) {
	o, err := read(t, nil, "--device-classes=a/memory=example.com/memory", "--device-types=example.com/gpu:model=h100:gpu/h100,example.com/gpu::gpu/any")
	require.NoError(t, err)
	want := requests.Rules{Classes: map[string]corev1.ResourceName{"a/memory": "example.com/memory"}, Types: map[corev1.ResourceName]requests.Types{"example.com/gpu": {
		Names: map[string]map[string]corev1.ResourceName{"model": {"h100": "gpu/h100"}}, Default: "gpu/any",
	}}}
	if !reflect.DeepEqual(o.Devices.Rules, want) {
		t.Errorf("the rules are %v, want %v", o.Devices.Rules, want)
	}
}

func TestTheBackendIsReadInAnyCase(t *testing.T) {
	for value, want := range map[string]string{
		"": "elasticquota", "elasticquota": "elasticquota", "ElasticQuota": "elasticquota", "ELASTICQUOTA": "elasticquota",
		"resourcequota": "resourcequota", "resourceQuota": "resourcequota", "ResourceQuota": "resourcequota",
	} {
		if o, err := read(t, []string{"QueueGroupPlugin=" + value}); err != nil || o.backend.name != want {
			t.Errorf("%q: backend %q, error %v", value, o.backend.name, err)
		}
	}
}

func TestAtTheStartItIsSaidWhichSettingsMeanNothingToTheBackend(t *testing.T) {
	for _, c := range []struct{ backend, args, want, not string }{
		{"elasticquota", "--oversell-rate=1.2", "oversellRate 1.2", "withoutEffect"},
		{"resourcequota", "", "quotaBackend resourcequota", "withoutEffect"},
		{"resourcequota", "--workers=3", "quotaBackend resourcequota", "oversell"},
		{"resourcequota", "--oversell-rate=1.2", "withoutEffect --oversell-rate", "pause"},
		{"resourcequota", "--pause-borrowing --oversell-rate=1.2", "withoutEffect --oversell-rate, --pause-borrowing", "oversellRate"},
	} {
		o, err := read(t, []string{"QueueGroupPlugin=" + c.backend}, strings.Fields(c.args)...)
		require.NoError(t, err)
		if shown := fmt.Sprintln(o.inForce()...); !strings.Contains(shown, c.want) || strings.Contains(shown, c.not) {
			t.Errorf("%s %s: in force is %s", c.backend, c.args, shown)
		}
	}
}
