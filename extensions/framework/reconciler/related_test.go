package reconciler

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/test/require"
)

// withSizes is a kind whose related objects of kind Size contain the pod templates.
type withSizes struct {
	framework.Adapter
	framework.RelatedReader
}

func (withSizes) Kind() framework.Kind {
	v1 := schema.GroupVersion{Group: "a.b", Version: "v1"}
	return framework.Kind{GroupVersionKind: v1.WithKind("Thing"), Resource: "things",
		Related: framework.Related{GroupVersionKind: v1.WithKind("Size"), Resource: "sizes"}}
}

func (withSizes) NewRelated() framework.Object { return &batchv1.Job{} }

func (withSizes) RelatedTemplates(object framework.Object) []*corev1.PodTemplateSpec {
	return []*corev1.PodTemplateSpec{&object.(*batchv1.Job).Spec.Template}
}

const sizes = `{"metadata": {"resourceVersion": "5"}, "items": [
	{"metadata": {"name": "mine", "namespace": "team", "ownerReferences": [{"kind": "Thing", "uid": "1", "controller": true}]},
	 "spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"priorityClassName": "high", "containers": [{"name": "main", "image": "large"}]}}}},
	{"metadata": {"name": "forged", "namespace": "team", "ownerReferences": [{"kind": "Thing", "uid": "1", "controller": true}]}},
	{"metadata": {"name": "older", "namespace": "team", "ownerReferences": [{"kind": "Thing", "uid": "0", "controller": true}]}},
	{"metadata": {"name": "unread", "namespace": "team", "ownerReferences": [{"kind": "Thing", "uid": "3", "controller": true}]},
	 "spec": {"suspend": true, "template": {"spec": {"priority": "high"}}}},
	{"metadata": {"name": "alone", "namespace": "team"}, "spec": {"suspend": true}}]}`

// relatedReconciler returns a reconciler that reads only sizes.
func relatedReconciler(t *testing.T) *reconciler {
	_, related, err := newRelated(listServer(t, sizes, func(*http.Request) {}), withSizes{}, unreported)
	require.NoError(t, err)
	listed(t, related)
	return &reconciler{adapter: withSizes{}, related: related}
}

func TestAJobIsReadWithTheObjectOfItsNameThatItControls(t *testing.T) {
	r := relatedReconciler(t)
	for _, test := range []struct {
		name string
		uid  types.UID
		want string
	}{
		{"mine", "1", "mine high"},
		{"other", "1", ""},
		{"older", "2", ""},
		{"alone", "4", ""},
		{"unread", "3", "unread Size unread:"},
	} {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: test.name, UID: test.uid}}
		object, fault := r.relatedOf(job)
		got := ""
		if size, found := object.(*batchv1.Job); found {
			got = strings.TrimSpace(fmt.Sprint(size.Name, " ", size.Spec.Template.Spec.PriorityClassName))
		}
		if fault != nil {
			got += " " + fault.Error()
		}
		if (got == "") != (test.want == "") || !strings.HasPrefix(got, test.want) {
			t.Errorf("with %s goes %q, want %q", test.name, got, test.want)
		}
	}
}

func TestOnlyWhatIsReadOfRelatedObjectsIsKept(t *testing.T) {
	r := relatedReconciler(t)
	for name, check := range map[string]func(*batchv1.Job) bool{
		"mine": func(size *batchv1.Job) bool {
			return size.Spec.Template.Labels == nil && size.Spec.Template.Spec.Containers[0].Image == ""
		},
		"alone": func(size *batchv1.Job) bool { return size.Spec.Suspend == nil },
	} {
		object, _, err := r.related.GetIndexer().GetByKey("team/" + name)
		size, found := object.(*batchv1.Job)
		if err != nil || !found || !check(size) {
			t.Errorf("of %s is kept %+v (%v)", name, object, err)
		}
	}
}
