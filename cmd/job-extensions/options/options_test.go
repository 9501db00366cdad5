package options

import (
	"slices"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/pkg/program"
	"kube-queue.dev/kube-queue/pkg/program/settings"
	"kube-queue.dev/kube-queue/pkg/program/settings/settingstest"
	"kube-queue.dev/kube-queue/test/require"
)

func TestEachSettingIsSetByItsFlagAndItsField(t *testing.T) {
	settingstest.Run(t, func() (*settings.Set, error) { return program.Settings(New().Program()) },
		append(settingstest.Shared(),
			settingstest.Row{Flag: "enabled-extensions", Field: "enabledExtensions", Values: []string{"job", "tfjob,job"}},
			settingstest.Row{Flag: "annotation-extensions", Field: "annotationExtensions", Values: []string{"job", "workflow,job"}},
			settingstest.Row{Flag: "webhook-bind-address", Field: "webhook.bindAddress", Values: []string{":9443", "127.0.0.1:1"}},
			settingstest.Row{Flag: "webhook-manage-certificate", Field: "webhook.manageCertificate", Values: []string{"false"}},
			settingstest.Row{Flag: "shut-down-ray-clusters", Field: "shutDownRayClusters", Values: []string{"true", "false"}},
			settingstest.Row{Flag: "workers", Field: "workers", Values: []string{"1", "9"}},
			settingstest.Row{Flag: "check-uninstall", Field: "checkUninstall", Values: []string{"true"}},
			settingstest.Row{Flag: "additional-resources", Field: "additionalResources", Values: []string{"a:",
				"team-a:requests.cpu=100m:requests.memory=128Mi:limits.memory=1Gi,team-b:requests.example.com/gpu=1,*:requests.cpu=0.5"}},
			settingstest.Row{Flag: "device-classes", Field: "devices.classes", Values: []string{"a=example.com/gpu", "a=example.com/gpu,b="}},
			settingstest.Row{Flag: "device-types", Field: "devices.types", Values: []string{"example.com/gpu::gpu/other", "example.com/gpu:model=h100:gpu/h100,example.com/gpu:model=:gpu/a"}}))
}

func TestTheCheckBeforeAnUninstallationNeedsNoUnits(t *testing.T) {
	for args, want := range map[string]bool{"--check-uninstall": true, "--check-uninstall=false": false} {
		o, _, err := read(t, nil, args)
		require.NoError(t, err)
		if got := o.Program().NeedsNoUnits; got == nil || got() != want {
			t.Errorf("%s: it needs units", args)
		}
	}
}

// read returns the options for a command line and an environment.
func read(t *testing.T, environ []string, args ...string) (*Options, *settings.Set, error) {
	t.Helper()
	o := New()
	p := o.Program()
	set, err := program.Settings(p)
	require.NoError(t, err)
	if err := set.Read(args, environ); err != nil {
		return nil, nil, err
	}
	return o, set, p.Validate()
}

func TestTFJobAndPyTorchJobAreQueuedWhereNothingElseIsSaid(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"TFJob", "PyTorchJob"}},
		{[]string{"--enabled-extensions=job"}, []string{"Job"}},
		{[]string{"--enabled-extensions="}, nil},
	} {
		o, _, err := read(t, nil, c.args...)
		require.NoError(t, err)
		var kinds []string
		for _, adapter := range o.Kinds.Enabled {
			kinds = append(kinds, adapter.Kind().Kind)
		}
		if !slices.Equal(kinds, c.want) {
			t.Errorf("%v: queued are %v, want %v", c.args, kinds, c.want)
		}
	}
}

func TestAKindIsQueuedByItsAnnotationAloneUnlessItIsEnabled(t *testing.T) {
	o, _, err := read(t, nil, "--enabled-extensions=tfjob,rayjob", "--annotation-extensions=job,rayjobv1alpha1, tfjob,job")
	require.NoError(t, err)
	if got := registry.NamesOf(o.Kinds.Enabled); !slices.Equal(got, []string{"tfjob", "rayjob"}) {
		t.Errorf("enabled are %v", got)
	}
	if got := registry.NamesOf(o.Kinds.Annotated); !slices.Equal(got, []string{"job"}) {
		t.Errorf("queued by the annotation alone are %v", got)
	}
	if got, all := len(o.Kinds.Others), len(registry.All()); got != all-3 || slices.Contains(registry.NamesOf(o.Kinds.Others), "job") {
		t.Errorf("not queued are %v", registry.NamesOf(o.Kinds.Others))
	}
	if labels := o.leaseLabels(); len(labels) != len(registry.All())+1 || labels["kinds.kube-queue/pod"] != "off" || labels["kinds.kube-queue/tfjob"] != "on" || labels["kinds.kube-queue/job"] != "on" || labels["kinds.kube-queue/jobset"] != "off" {
		t.Errorf("the Lease says %v", labels)
	}
}

func TestPodsAreQueuedByEitherList(t *testing.T) {
	for _, args := range [][]string{{"--enabled-extensions=pod"}, {"--annotation-extensions=job, pod"}} {
		o, _, err := read(t, nil, args...)
		if err != nil || len(o.Kinds.Pods) != 2 || o.leaseLabels()["kinds.kube-queue/pod"] != "on" {
			t.Errorf("%v: pods have the adapters %v, and the Lease says %v (%v)", args, o.Kinds.Pods, o.leaseLabels(), err)
		}
	}
}

func TestSettingsThatAreNotKnownAreRefusedWithWhatIs(t *testing.T) {
	for _, c := range []struct {
		arg   string
		words []string
	}{
		{"--enabled-extensions=job,tfjobs", []string{"--enabled-extensions", "tfjobs", "pytorchjob"}},
		{"--annotation-extensions=jbo", []string{"--annotation-extensions", "jbo", "pytorchjob"}},
		{"--workers=0", []string{"--workers", "greater than 0"}},
		{"--additional-resources=a:requests.cpu=many", []string{"--additional-resources", `namespace "a"`, "requests.cpu", "many"}},
		{"--device-classes=gpu.example.com", []string{"--device-classes", "gpu.example.com", "CLASS=RESOURCE"}},
		{"--device-types=example.com/gpu:h100", []string{"--device-types", "example.com/gpu:h100", "RESOURCE:LABEL=VALUE:TYPE"}},
	} {
		_, _, err := read(t, nil, c.arg)
		if err == nil {
			t.Fatalf("%s is accepted", c.arg)
		}
		require.Says(t, c.arg, err.Error(), c.words...)
	}
}

func TestAVariableOfTheOtherProgramIsReported(t *testing.T) {
	_, set, err := read(t, []string{"StrictPriority=true", "HOME=/"})
	require.NoError(t, err)
	if reported := set.Ineffective(); len(reported) != 1 || !strings.Contains(reported[0], "StrictPriority") || !strings.Contains(reported[0], "kube-queue-controller") {
		t.Errorf("reported is %q", reported)
	}
}
