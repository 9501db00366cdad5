// Package adaptertest tests adapters with files: each case has a job and the expected
// result.
//
// A file in testdata, or in a folder there with the name of the extension, contains
// cases of this form, separated by "---":
//
//	name: a sentence
//	job: {...}          the job as the API server stores it
//	related: {...}      the related object, for kinds that have one
//	podSets: [...]      of the unit; priorityClassName, quotaScopes and unset are
//	  compared only if they are given
//	resource: {...}     the total of the unit
//	priority, priorityClassName
//	see: {suspended, started, running, ready, stopped, suspending, end, queuing, marked, foreign, unholdable,
//	  lingers}
//	invalid: a part of the message of InvalidRequest
//	warning: a part of the warning
//	suspend, release: the adapter's part of the patch that suspends or releases the
//	  job; optional
//
// One more document, example, describes how tests use the example of the kind. It is read by
// test/acceptance/kinds.
//
// PriorityClasses "high" (1000), "low" (10) and the default "usual" (5) exist, and
// a RuntimeClass "sandbox" whose pods have an overhead of 250m CPU and 64Mi. One device
// of DeviceClass gpu.example.com counts as one example.com/gpu; ResourceClaimTemplate
// "two-gpus" and ResourceClaim "shared-gpu" request 2 and 1. The node label model with
// value h100 selects the type gpu/h100 of example.com/gpu.
package adaptertest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/requests"
	"kube-queue.dev/kube-queue/test/require"
)

// Case is a job and the expected result.
type Case struct {
	Example           json.RawMessage     `json:"example"`
	Name              string              `json:"name"`
	Job               json.RawMessage     `json:"job"`
	Related           json.RawMessage     `json:"related"`
	PodSets           []v1alpha1.PodSet   `json:"podSets"`
	Resource          corev1.ResourceList `json:"resource"`
	Priority          int32               `json:"priority"`
	PriorityClassName string              `json:"priorityClassName"`
	See               see                 `json:"see"`
	Invalid           string              `json:"invalid"`
	Warning           string              `json:"warning"`
	Suspend           map[string]any      `json:"suspend"`
	Release           map[string]any      `json:"release"`
}

type see struct {
	Suspended  bool `json:"suspended,omitempty"`
	Started    bool `json:"started,omitempty"`
	Running    bool `json:"running,omitempty"`
	Ready      bool `json:"ready,omitempty"`
	Stopped    bool `json:"stopped,omitempty"`
	Suspending bool `json:"suspending,omitempty"`
	Marked     bool `json:"marked,omitempty"`
	Foreign    bool `json:"foreign,omitempty"`
	// Unholdable: the job is not changed.
	Unholdable bool `json:"unholdable,omitempty"`
	// Lingers: the job continues for a while after it is suspended.
	Lingers bool   `json:"lingers,omitempty"`
	End     string `json:"end,omitempty"`
	Queuing string `json:"queuing,omitempty"`
}

// Cluster has the objects of the cluster of a test.
type Cluster struct {
	// Classes are its PriorityClasses.
	Classes map[string]int32
	// RuntimeClasses are those of the cluster, by name.
	RuntimeClasses map[string]*nodev1.RuntimeClass
	// Ranges are the LimitRanges of its namespaces.
	Ranges map[string][]*corev1.LimitRange
	// Devices are the rules for devices.
	Devices requests.Rules
	// ClaimTemplates and Claims exist in every namespace, by name.
	ClaimTemplates, Claims map[string]*resourcev1.ResourceClaimSpec
}

// Usual returns the cluster of the test data.
func Usual() Cluster {
	return Cluster{
		Classes: map[string]int32{"high": 1000, "low": 10, "usual": 5},
		RuntimeClasses: map[string]*nodev1.RuntimeClass{
			"sandbox": {Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
			}}},
		},
		Devices: requests.Rules{
			Classes: map[string]corev1.ResourceName{"gpu.example.com": "example.com/gpu"},
			Types: map[corev1.ResourceName]requests.Types{
				"example.com/gpu": {Names: map[string]map[string]corev1.ResourceName{"model": {"h100": "gpu/h100"}}},
			},
		},
		ClaimTemplates: map[string]*resourcev1.ResourceClaimSpec{"two-gpus": claimOf(2)},
		Claims:         map[string]*resourcev1.ResourceClaimSpec{"shared-gpu": claimOf(1)},
	}
}

func claimOf(count int64) *resourcev1.ResourceClaimSpec {
	return &resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
		{Name: "gpus", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.example.com", Count: count}},
	}}}
}

func (c Cluster) Value(name string) (int32, bool) {
	value, found := c.Classes[name]
	return value, found
}

// Default returns the class "usual", if it exists.
func (c Cluster) Default() (string, int32, bool) {
	value, found := c.Classes["usual"]
	if !found {
		return "", 0, false
	}
	return "usual", value, true
}

func (c Cluster) RuntimeClass(name string) (*nodev1.RuntimeClass, bool) {
	class, found := c.RuntimeClasses[name]
	return class, found
}

func (c Cluster) LimitRanges(namespace string) []*corev1.LimitRange { return c.Ranges[namespace] }

func (c Cluster) Rules() requests.Rules { return c.Devices }

func (c Cluster) ClaimTemplate(_, name string) (*resourcev1.ResourceClaimSpec, bool) {
	claim, found := c.ClaimTemplates[name]
	return claim, found
}

func (c Cluster) Claim(_, name string) (*resourcev1.ResourceClaimSpec, bool) {
	claim, found := c.Claims[name]
	return claim, found
}

// Run tests the adapter with each case of testdata.
func Run(t *testing.T, adapter framework.Adapter) {
	for _, test := range Cases(t, "testdata", adapter.Kind().Name) {
		t.Run(test.Name, func(t *testing.T) { try(t, adapter, test) })
	}
}

// Cases returns the cases of the extension with the name in a folder testdata.
func Cases(t *testing.T, folder, name string) []Case {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, name, "*.yaml"))
	if err == nil && len(files) == 0 {
		files, err = filepath.Glob(filepath.Join(folder, "*.yaml"))
	}
	if err != nil || len(files) == 0 {
		t.Fatalf("no test data of %s found in %s: %v", name, folder, err)
	}
	var all []Case
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, document := range bytes.Split(data, []byte("\n---\n")) {
			var test Case
			if err := yaml.UnmarshalStrict(document, &test); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if test.Example == nil {
				all = append(all, test)
			}
		}
	}
	return all
}

func try(t *testing.T, adapter framework.Adapter, test Case) {
	got, err := decision.Observe(adapter, test.Job, test.Related, Usual())
	require.NoError(t, err)
	if saw := seeOf(got); saw != test.See {
		t.Errorf("the state is %+v, want %+v", saw, test.See)
	}
	checkReady(t, adapter.Kind(), got.Job)
	if (got.Invalid == "") != (test.Invalid == "") || !strings.Contains(got.Invalid, test.Invalid) {
		t.Errorf("the message of InvalidRequest is %q, want %q", got.Invalid, test.Invalid)
	}
	if (got.Warning == "") != (test.Warning == "") || !strings.Contains(got.Warning, test.Warning) {
		t.Errorf("the warning is %q, want %q", got.Warning, test.Warning)
	}
	tryPatches(t, adapter, test)
	tryAnnotations(t, adapter, test, got.Spec.PodSets)
	tryUnknown(t, adapter, test, got.Spec.PodSets)
	if test.Invalid != "" {
		if *got.Spec.Active {
			t.Errorf("the unit of an invalid job is active")
		}
		return
	}
	if podSets := compared(got.Spec.PodSets, test.PodSets); !equality.Semantic.DeepEqual(podSets, test.PodSets) {
		t.Errorf("pod sets are\n%s, want\n%s", text(podSets), text(test.PodSets))
	}
	if !equality.Semantic.DeepEqual(got.Spec.Resource, test.Resource) {
		t.Errorf("the total is %s, not %s", text(got.Spec.Resource), text(test.Resource))
	}
	if got.Spec.Priority != test.Priority || got.Spec.PriorityClassName != test.PriorityClassName {
		t.Errorf("the priority is %d of class %q, not %d of %q", got.Spec.Priority, got.Spec.PriorityClassName, test.Priority, test.PriorityClassName)
	}
}

// readyIdle are kinds whose jobs can be ready although none of their pods runs: if they request none, or if all have
// succeeded and the job does not show its end yet.
var readyIdle = []string{"Job", "JobSet", "TrainJob"}

// checkReady checks that a ready job runs.
func checkReady(t interface{ Errorf(string, ...any) }, kind framework.Kind, job framework.JobState) {
	if job.Ready && !job.Running && !slices.Contains(readyIdle, kind.Kind) {
		t.Errorf("all pods are ready of a job that does not run: %+v", job)
	}
}

// compared clears the fields of the pod sets that all adapters set in the same way, unless the case contains them.
func compared(got, want []v1alpha1.PodSet) []v1alpha1.PodSet {
	podSets := slices.Clone(got)
	for i := range min(len(podSets), len(want)) {
		if want[i].PriorityClassName == "" {
			podSets[i].PriorityClassName = ""
		}
		if want[i].QuotaScopes == nil {
			podSets[i].QuotaScopes = nil
		}
		if want[i].Unset == nil {
			podSets[i].Unset = nil
		}
	}
	return podSets
}

// tryPatches checks that the patches that suspend and release the job set the kind's
// suspend field, and compares the complete patches if the case contains them.
func tryPatches(t *testing.T, adapter framework.Adapter, test Case) {
	for suspend, want := range map[bool]map[string]any{true: test.Suspend, false: test.Release} {
		got, err := decision.SuspendPatch(adapter, test.Job, suspend)
		require.NoError(t, err)
		path := adapter.Kind().SuspendPath
		if value, found, err := unstructured.NestedBool(got, path...); err != nil || !found || value != suspend {
			t.Errorf("the patch for suspend %v sets %s to %v", suspend, strings.Join(path, "."), value)
		}
		if want != nil && text(got) != text(want) {
			t.Errorf("the patch for suspend %v is\n%s, not\n%s", suspend, text(got), text(want))
		}
	}
}

func seeOf(got decision.Observation) see {
	saw := see{
		Suspended: got.Job.Suspended, Started: got.Job.Started, Running: got.Job.Running, Ready: got.Job.Ready, Stopped: got.Job.Stopped,
		Suspending: got.Job.Suspending,
		Marked:     got.Marked, Foreign: got.Foreign != "",
		Unholdable: got.Job.Unholdable != "", Lingers: got.Job.Lingers != "",
	}
	if end := got.Job.End; end != nil {
		saw.End = "Failed"
		if end.Succeeded {
			saw.End = "Succeeded"
		}
	}
	switch q := got.Job.Queuing; {
	case q.Shown:
		saw.Queuing = "shown"
	case q.On:
		saw.Queuing = "buried"
	case q.Ready:
		saw.Queuing = "ready"
	}
	return saw
}

func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
