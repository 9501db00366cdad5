package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/generated/clientset/versioned"
	"kube-queue.dev/kube-queue/pkg/lenient"
)

const benchUnits = 10_000

// BenchmarkReadUnits compares how the controller reads units with what a typed
// client does, in time and in what stays in the cache.
func BenchmarkReadUnits(b *testing.B) {
	client := canned(b)
	typed, units := client.SchedulingV1alpha1().QueueUnits(""), lenient.NewClient(client.SchedulingV1alpha1().RESTClient(), UnitKind())
	fromWatch := func(events watch.Interface, err error) ([]apiruntime.Object, error) {
		if err != nil {
			return nil, err
		}
		var objects []apiruntime.Object
		for event := range events.ResultChan() {
			objects = append(objects, cachedOf(event.Object))
		}
		return objects, nil
	}
	fromList := func(list apiruntime.Object, err error) ([]apiruntime.Object, error) {
		if err != nil {
			return nil, err
		}
		objects, err := apimeta.ExtractList(list)
		for i, object := range objects {
			objects[i] = cachedOf(object)
		}
		return objects, err
	}
	for _, way := range []struct {
		name string
		read func() ([]apiruntime.Object, error)
	}{
		{"watch/typed", func() ([]apiruntime.Object, error) { return fromWatch(typed.Watch(b.Context(), metav1.ListOptions{})) }},
		{"watch/lenient", func() ([]apiruntime.Object, error) {
			return fromWatch(units.Watch(b.Context(), "", metav1.ListOptions{}))
		}},
		{"list/typed", func() ([]apiruntime.Object, error) { return fromList(typed.List(b.Context(), metav1.ListOptions{})) }},
		{"list/lenient", func() ([]apiruntime.Object, error) {
			var objects []apiruntime.Object
			_, err := units.Each(b.Context(), "", metav1.ListOptions{}, func(object lenient.Object) error {
				objects = append(objects, cachedOf(object))
				return nil
			})
			return objects, err
		}},
	} {
		b.Run(way.name, func(b *testing.B) { measureReading(b, way.read) })
	}
}

// cachedOf is what stays in the cache of an object that was read.
func cachedOf(object any) apiruntime.Object {
	cached, _ := Compactor{}.Transform(object)
	cached.(*Cached).Take()
	return cached.(apiruntime.Object)
}

func measureReading(b *testing.B, read func() ([]apiruntime.Object, error)) {
	b.ReportAllocs()
	var kept []apiruntime.Object
	before := heap()
	for b.Loop() {
		var err error
		if kept, err = read(); err != nil || len(kept) != benchUnits {
			b.Fatalf("%d units, error %v", len(kept), err)
		}
	}
	b.ReportMetric(float64(heap()-before)/benchUnits, "kept-B/unit")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchUnits, "ns/unit")
	runtime.KeepAlive(kept)
}

func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// canned answers every list and watch with the same units.
func canned(b *testing.B) versioned.Interface {
	b.Helper()
	var items []json.RawMessage
	var events bytes.Buffer
	for i := range benchUnits {
		text, err := json.Marshal(benchUnit(i))
		if err != nil {
			b.Fatal(err)
		}
		items = append(items, text)
		fmt.Fprintf(&events, `{"type":"ADDED","object":%s}`+"\n", text)
	}
	list, err := json.Marshal(map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnitList",
		"metadata": map[string]any{"resourceVersion": "1"}, "items": items})
	if err != nil {
		b.Fatal(err)
	}
	client, err := versioned.NewForConfig(&rest.Config{Host: "http://canned", QPS: -1, Transport: answer(func(r *http.Request) []byte {
		if r.URL.Query().Get("watch") != "" {
			return events.Bytes()
		}
		return list
	})})
	if err != nil {
		b.Fatal(err)
	}
	return client
}

type answer func(*http.Request) []byte

func (a answer) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(a(r))), Request: r}, nil
}

// benchUnit is as job-extensions makes them, with what the API server adds.
func benchUnit(i int) *schedulingv1alpha1.QueueUnit {
	requests := corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("4Gi"), "nvidia.com/gpu": resource.MustParse("2")}
	at := metav1.NewMicroTime(time.Date(2026, 1, 1, 0, 0, 0, i*1000, time.UTC))
	isActive, isOwner := true, true
	return &schedulingv1alpha1.QueueUnit{
		TypeMeta: metav1.TypeMeta{APIVersion: "scheduling.x-k8s.io/v1alpha1", Kind: "QueueUnit"},
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("tfjob-training-%06d-0a1b2c3d", i), Namespace: "team-a", UID: "4b1a7d8e-7a3b-4b7e-9a51-0f3b6a3c9d10",
			ResourceVersion: fmt.Sprint(1_000_000 + i), Generation: 1, CreationTimestamp: metav1.NewTime(at.Time),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "kubeflow.org/v1", Kind: "TFJob", Name: fmt.Sprintf("training-%06d", i), UID: "9d1c7a3b-1d1a-4b7e-9a51-0f3b6a3c9d10", Controller: &isOwner}},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "job-extensions", Operation: "Update", APIVersion: "scheduling.x-k8s.io/v1alpha1", FieldsType: "FieldsV1",
				FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"9d1c7a3b-1d1a-4b7e-9a51-0f3b6a3c9d10\"}":{}}},"f:spec":{".":{},"f:active":{},"f:consumerRef":{},"f:podSets":{},"f:preemptible":{},"f:priority":{},"f:resource":{},"f:submissionTime":{}}}`)}}},
		},
		Spec: schedulingv1alpha1.QueueUnitSpec{
			ConsumerRef: schedulingv1alpha1.ConsumerReference{APIVersion: "kubeflow.org/v1", Kind: "TFJob", Namespace: "team-a", Name: fmt.Sprintf("training-%06d", i), UID: "9d1c7a3b-1d1a-4b7e-9a51-0f3b6a3c9d10"},
			Priority:    5, SubmissionTime: &at, Active: &isActive, Preemptible: &isActive, Resource: requests,
			PodSets: []schedulingv1alpha1.PodSet{{Name: "ps", Count: 1, Requests: requests}, {Name: "worker", Count: 4, Requests: requests, Limits: requests}},
		},
		Status: schedulingv1alpha1.QueueUnitStatus{Phase: schedulingv1alpha1.PhaseEnqueued, Reason: "QuotaExceeded", Queue: "root-team-a",
			Message: "insufficient cpu in quota root/team-a: requested 1500m, used 39 of max 40"},
	}
}
