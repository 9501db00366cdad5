package elasticquota

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/test/require"
)

// writing is a Source whose writes are checked.
type writing struct {
	*testing.T
	*Source
	// answer is the HTTP status of the next write, and written are the bodies of all writes.
	answer  int
	written []string
}

func newWriting(t *testing.T) *writing {
	t.Helper()
	w := &writing{T: t, answer: http.StatusOK}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if got := r.Method + " " + r.URL.Path; got != "PATCH /apis/scheduling.sigs.k8s.io/v1beta1/namespaces/kube-system/elasticquotatrees/t/status" {
			t.Errorf("it requests %s", got)
		}
		w.written = append(w.written, string(body))
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(w.answer)
		// A typed client could not read this.
		if _, err := io.WriteString(rw, `{"apiVersion":"scheduling.sigs.k8s.io/v1beta1","kind":"ElasticQuotaTree","spec":"odd"}`); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	w.Source = New(tree.Options{}, PodOptions{})
	w.names = resources.NewNames()
	w.client = client.Resource(quotav1beta1.SchemeGroupVersion.WithResource("elasticquotatrees"))
	w.forest = newForest(w.names, w.opts, atNoon)
	w.forest.start()
	return w
}

// shows calls show again, and fails unless there are this many writes in total.
func (w *writing) shows(show func(context.Context) error, writes int) {
	w.Helper()
	require.NoError(w, show(w.Context()))
	if len(w.written) != writes {
		w.Fatalf("%d writes, want %d: %q", len(w.written), writes, w.written)
	}
}

// last returns the last write.
func (w *writing) last() (uid string, status quotav1beta1.ElasticQuotaTreeStatus) {
	w.Helper()
	var patch struct {
		Metadata struct{ UID string }
		Status   quotav1beta1.ElasticQuotaTreeStatus
	}
	require.NoError(w, json.Unmarshal([]byte(w.written[len(w.written)-1]), &patch))
	return patch.Metadata.UID, patch.Status
}

func (w *writing) vector(amounts ...any) resources.Vector {
	var v resources.Vector
	for i := 0; i < len(amounts); i += 2 {
		v = v.With(w.names.ID(amounts[i].(string)), int64(amounts[i+1].(int)))
	}
	return v
}

func TestTheStatusSaysWhatIsUsedBorrowedAndRequested(t *testing.T) {
	w := newWriting(t)
	w.forest.set("kube-system/t", treeObject(t, "kube-system", "t", 0, 7,
		`{name: root, max: {cpu: 4}, children: [{name: team, namespaces: [a], min: {cpu: 1}}, {name: idle, namespaces: [b]}]}`))
	group, refusal := w.forest.backend.Place("a", "")
	if refusal != nil {
		t.Fatal(refusal)
	}
	group.Charge(&quota.Charge{Demand: quota.Demand{Preemptible: true, Requests: w.vector("cpu", 3000, quota.JobsResource, 1)}})
	show := w.PrepareStatus(map[quota.NodeID]resources.Vector{
		0: w.vector("cpu", 2000, "memory", 1024, quota.JobsResource, 2), 1: w.vector("cpu", 2000, quota.JobsResource, 1), 2: w.vector("memory", 1024, quota.JobsResource, 1)})
	w.shows(show, 1)
	uid, status := w.last()
	if uid != "uid-t" || status.ObservedGeneration != 7 {
		t.Errorf("written to %s at generation %d", uid, status.ObservedGeneration)
	}
	var got []string
	for _, n := range status.Nodes {
		got = append(got, fmt.Sprint(n.Path, " jobs ", n.Jobs, " used ", n.Used.Cpu(), " borrowed ", n.Borrowed.Cpu(), " request ", n.Request.Cpu(), " ", n.Request.Memory(), " ", len(n.Request)))
	}
	if want := "[root jobs 1 used 3 borrowed 0 request 5 1Ki 2 root/team jobs 1 used 3 borrowed 2 request 5 0 1 root/idle jobs 0 used 0 borrowed 0 request 0 1Ki 1]"; fmt.Sprint(got) != want {
		t.Errorf("the nodes are\n%v, want\n%s", got, want)
	}
}

func TestTheStatusRepeatsMinAndMaxUnlessTheyAreTooLarge(t *testing.T) {
	w := newWriting(t)
	w.forest.set("kube-system/t", treeObject(t, "kube-system", "t", 0, 1,
		`{name: root, max: {cpu: 4}, children: [{name: team, namespaces: [a], min: {cpu: 1500m}, max: {kube-queue/max-jobs: 3}}, {name: idle, namespaces: [b]}]}`))
	w.shows(w.PrepareStatus(nil), 1)
	_, status := w.last()
	var got []string
	for _, n := range status.Nodes {
		got = append(got, fmt.Sprintf("%s min %v max %v", n.Path, text(n.Min), text(n.Max)))
	}
	if want := "[root min map[cpu:1500m] max map[cpu:4] root/team min map[cpu:1500m] max map[kube-queue/max-jobs:3] root/idle min map[] max map[]]"; fmt.Sprint(got) != want {
		t.Errorf("the nodes are\n%v, want\n%s", got, want)
	}

	var children []string
	for i := range 10_000 {
		children = append(children, fmt.Sprintf(`{name: n%d, max: {cpu: 4}}`, i))
	}
	w.forest.set("kube-system/t", treeObject(t, "kube-system", "t", 0, 2, `{name: root, max: {cpu: 4}, children: [`+strings.Join(children, ",")+`]}`))
	w.shows(w.PrepareStatus(nil), 2)
	_, status = w.last()
	for _, n := range status.Nodes {
		if n.Min != nil || n.Max != nil {
			t.Fatalf("node %s of a large tree has %v and %v", n.Path, n.Min, n.Max)
		}
	}
}

func text(list corev1.ResourceList) map[string]string {
	texts := map[string]string{}
	for name, q := range list {
		texts[string(name)] = q.String()
	}
	return texts
}

func TestTheStatusIsWrittenOnlyWhereItDiffers(t *testing.T) {
	w := newWriting(t)
	if w.PrepareStatus(nil) != nil {
		t.Fatal("something is shown where there is no tree")
	}
	object := treeObject(t, "kube-system", "t", 0, 1, goodRoot)
	w.forest.set("kube-system/t", object)
	show := w.PrepareStatus(nil)
	w.shows(show, 1)
	w.shows(show, 1) // already written
	_, status := w.last()
	if len(status.Conditions) != 1 || status.Conditions[0].Status != metav1.ConditionTrue || status.Conditions[0].Reason != string(wellknown.ReasonInForce) {
		t.Errorf("the conditions are %+v", status.Conditions)
	}

	// The tree comes back with this status.
	object = object.DeepCopy()
	var patch map[string]any
	require.NoError(t, json.Unmarshal([]byte(w.written[0]), &patch))
	object.Object["status"] = patch["status"]
	w.forest.set("kube-system/t", object)
	w.shows(w.PrepareStatus(nil), 1)
	w.shows(w.PrepareStatus(map[quota.NodeID]resources.Vector{0: w.vector("cpu", 1)}), 2)
}

func TestAnInvalidTreeSaysWhy(t *testing.T) {
	w := newWriting(t)
	w.forest.set("kube-system/t", treeObject(t, "kube-system", "t", 0, 1, `{name: root, max: {cpu: -1}}`))
	w.shows(w.PrepareStatus(nil), 1)
	_, status := w.last()
	if c := status.Conditions; len(c) != 1 || c[0].Status != metav1.ConditionFalse || c[0].Reason != string(wellknown.ReasonInvalidQuotaTree) || c[0].Message != w.forest.problem || status.Nodes != nil {
		t.Errorf("the status is %+v", status)
	}
}

func TestAWriteThatFailsIsTriedAgain(t *testing.T) {
	for _, c := range []struct {
		answer int
		fails  bool
	}{
		{http.StatusInternalServerError, true},
		{http.StatusNotFound, false}, // it is deleted
		{http.StatusConflict, false}, // it was created again
	} {
		w := newWriting(t)
		w.forest.set("kube-system/t", treeObject(t, "kube-system", "t", time.Hour, 1, goodRoot))
		show := w.PrepareStatus(nil)
		w.answer = c.answer
		if err := show(t.Context()); (err != nil) != c.fails {
			t.Errorf("answered %d, it fails with %v", c.answer, err)
		}
		w.answer = http.StatusOK
		w.shows(show, 2)
	}
}

func TestTheTreeShowsWhichLimitsAreExceeded(t *testing.T) {
	w := newWriting(t)
	w.forest.set("kube-system/t", treeObject(t, "kube-system", "t", 0, 1, `{name: root, max: {cpu: 4}}`))
	over := func() *metav1.Condition {
		t.Helper()
		w.written = nil
		w.shows(w.PrepareStatus(nil), 1)
		_, status := w.last()
		// The next status is compared with a tree that has this one.
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
		require.NoError(t, err)
		w.forest.chosen = w.forest.chosen.DeepCopy()
		w.forest.chosen.Object["status"] = object
		w.forest.chosen.SetGeneration(w.forest.chosen.GetGeneration() + 1)
		return meta.FindStatusCondition(status.Conditions, wellknown.ConditionOverQuota)
	}
	if w.Report(nil); over() != nil {
		t.Error("a tree whose limits were never exceeded has the condition")
	}
	excess := quota.Excess{Node: "root", Resource: "cpu", Used: 5000, Limit: 4000, Unqueued: 2000}
	change := w.Report([]quota.Excess{excess})
	const message = "quota root is above its limit: cpu is used 5 of max 4 (2 by pods outside of the queue)"
	if n := change.Notices; len(n) != 1 || n[0].Reason != wellknown.EventOverQuota || n[0].Message != message {
		t.Errorf("notices are %+v, want one with %q", n, message)
	}
	if c := over(); c == nil || c.Status != metav1.ConditionTrue || c.Message != message {
		t.Errorf("the condition is %+v", c)
	}
	other := excess
	other.Resource = "memory"
	if n := w.Report([]quota.Excess{excess, other}).Notices; len(n) != 1 || n[0].EventKey() == change.Notices[0].EventKey() {
		t.Errorf("notices are %+v, want another event", n)
	}
	w.Report([]quota.Excess{excess})
	excess.Used = 6000
	if n := w.Report([]quota.Excess{excess}).Notices; len(n) != 0 {
		t.Errorf("notices are %+v, want none: only the amount has changed", n)
	}
	if c := over(); c == nil || !strings.Contains(c.Message, "used 6 of max 4") {
		t.Errorf("the condition is %+v, want the new amount", c)
	}
	w.Report(nil)
	w.forest.now = func() time.Time { return noon.Add(time.Minute) }
	if n := w.Report([]quota.Excess{excess}).Notices; len(n) != 1 || n[0].Key == change.Notices[0].Key {
		t.Errorf("notices are %+v, want another event: the limit is exceeded again", n)
	}
	over()
	w.forest.excesses, w.forest.excessesKnown = nil, false // after a start
	if c := over(); c == nil || c.Status != metav1.ConditionTrue {
		t.Errorf("the condition is %+v before it is known, want it as it was", c)
	}
	w.Report(nil)
	if c := over(); c == nil || c.Status != metav1.ConditionFalse || c.Reason != string(wellknown.ReasonWithinLimits) {
		t.Errorf("the condition is %+v, want False", c)
	}
}

func TestATreeThatWasNeverInForceShowsNoOldFigures(t *testing.T) {
	w := newWriting(t)
	object := treeObject(t, "kube-system", "t", 0, 2, `{name: root, max: {cpu: -1}}`)
	object.Object["status"] = map[string]any{"nodes": []any{map[string]any{"path": "root", "jobs": int64(3)}}}
	w.forest.set("kube-system/t", object)
	w.shows(w.PrepareStatus(nil), 1)
	var patch struct{ Status map[string]any }
	require.NoError(t, json.Unmarshal([]byte(w.written[0]), &patch))
	if nodes, written := patch.Status["nodes"]; !written || nodes != nil {
		t.Errorf("the nodes are patched to %v (%t), want null", nodes, written)
	}
}
