package reconciler

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/pod"
	"kube-queue.dev/kube-queue/extensions/rayjob"
	"kube-queue.dev/kube-queue/test/require"
)

func TestPodsOfTheDeletedClusterOfAJobCountUntilTheyAreGone(t *testing.T) {
	f := frameworkOf(t, Options{Adapters: []framework.Adapter{rayjob.New()}, Pods: pod.Adapters()})
	for name, of := range map[string]struct{ cluster, released string }{
		"waits": {"new", ""}, "passed": {"new", "2/j/workers"}, "left": {"old", "2/j/workers"}, "earlier": {"old", "1/j/workers"}, "other": {"others", "2/k/workers"},
	} {
		one := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name),
			Annotations:     map[string]string{wellknown.GrowthAnnotation: "workers", wellknown.ReleasedAnnotation: of.released},
			OwnerReferences: []metav1.OwnerReference{{Kind: "RayCluster", UID: types.UID(of.cluster), Controller: new(true)}}}}
		if of.released == "" {
			one.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: wellknown.PodGate}}
		}
		cached(t, f.pods, one)
	}
	job := rayjob.New().New()
	job.SetUID("j")
	job.SetAnnotations(map[string]string{wellknown.ReleasedAnnotation: "2"})
	for cluster, want := range map[types.UID]string{"new": "left passed waits", "": "left passed"} {
		var scaled framework.Object
		if cluster != "" {
			scaled = &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{UID: cluster}}
		}
		var names []string
		for _, one := range f.reconcilers[0].growing(job, scaled, noon) {
			names = append(names, one.Name)
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != want {
			t.Errorf("with RayCluster %q: %s", cluster, got)
		}
	}
}

const rayClusters = `{"metadata": {"resourceVersion": "5"}, "items": [
	{"metadata": {"name": "mine", "namespace": "team", "resourceVersion": "3", "ownerReferences": [{"kind": "RayJob", "uid": "1", "controller": true}]},
	 "spec": {"headGroupSpec": {"template": {"spec": {"containers": [{"name": "ray"}]}}}, "workerGroupSpecs": [{"groupName": "w", "replicas": 2, "maxReplicas": 5}]}},
	{"metadata": {"name": "retry-1", "namespace": "team", "ownerReferences": [{"kind": "RayJob", "uid": "2", "controller": true}]}},
	{"metadata": {"name": "retry-2", "namespace": "team", "ownerReferences": [{"kind": "RayJob", "uid": "2", "controller": true}]}},
	{"metadata": {"name": "unread", "namespace": "team", "ownerReferences": [{"kind": "RayJob", "uid": "3", "controller": true}]},
	 "spec": {"workerGroupSpecs": [{"groupName": "w", "replicas": "many"}]}},
	{"metadata": {"name": "alone", "namespace": "team"}, "spec": {"workerGroupSpecs": [{"groupName": "w", "replicas": 2}]}}]}`

// The RayClusters of RayJobs are read in the version of the jobs. They count as remaining even if they cannot be
// decoded.
func TestTheClusterOfAJobIsReadWithItsReplicas(t *testing.T) {
	for _, version := range []string{"v1", "v1alpha1"} {
		config := listServer(t, rayClusters, func(r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, "/apis/ray.io/"+version+"/") {
				t.Errorf("it reads %s", r.URL)
			}
		})
		adapter := rayjob.New()
		remains, err := newRemains(config, adapter, func() string { return version }, unreported)
		require.NoError(t, err)
		listed(t, remains)
		r := &reconciler{adapter: adapter, remains: remains}
		for uid, want := range map[types.UID]struct {
			remains string
			scaled  bool
		}{"1": {"RayCluster mine", true}, "2": {"RayCluster retry-", false}, "3": {"RayCluster unread", false}, "4": {"", false}} {
			if got := r.remainOf(uid); !strings.HasPrefix(got, want.remains) || (got == "") != (want.remains == "") {
				t.Errorf("of job %s remains %q, not %q", uid, got, want.remains)
			}
			if got := r.scaledOf(uid); (got != nil) != want.scaled {
				t.Errorf("job %s is scaled by %v", uid, got)
			}
		}
		mine, _ := r.scaledOf("1").(*rayv1.RayCluster)
		if mine == nil || mine.ResourceVersion != "3" || *mine.Spec.WorkerGroupSpecs[0].Replicas != 2 ||
			mine.Spec.WorkerGroupSpecs[0].MaxReplicas != nil || len(mine.Spec.HeadGroupSpec.Template.Spec.Containers) > 0 {
			t.Errorf("the cluster is %+v", mine)
		}
		object, _, err := remains.GetIndexer().GetByKey("team/alone")
		if alone, is := object.(framework.Object); err != nil || !is || len(alone.(*rayv1.RayCluster).Spec.WorkerGroupSpecs) > 0 {
			t.Errorf("of another cluster is kept %+v (%v)", object, err)
		}
	}
}
