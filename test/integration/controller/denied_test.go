package controller

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/clientset"
	"kube-queue.dev/kube-queue/pkg/controller"
)

var (
	deniedUnits = flag.Int("denied", 40, "the number of units whose status a policy denies")
	otherUnits  = flag.Int("others", 100, "the number of other units that are admitted before and beside them")
)

// statusTries counts the writes of unit statuses in a namespace.
type statusTries struct {
	http.RoundTripper
	namespace string
	tries     *atomic.Int64
}

func (c statusTries) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/"+c.namespace+"/queueunits/") && strings.HasSuffix(r.URL.Path, "/status") {
		c.tries.Add(1)
	}
	return c.RoundTripper.RoundTrip(r)
}

// There are far more units than workers. To see the rates, run go test ./test/integration/controller -run
// StatusIsDenied -v -denied=1000 -others=2000
func TestUnitsWhoseStatusIsDeniedHoldUpNoOthers(t *testing.T) {
	s := newStage(t)
	_, err := s.trees().Patch(t.Context(), "tree", types.MergePatchType,
		[]byte(`{"spec": {"root": {"max": {"cpu": 1000000}, "namespaces": ["`+s.namespace+`", "before", "beside"]}}}`), metav1.PatchOptions{})
	must(t, err)
	for _, object := range []string{
		`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: no-status}, spec: {
			matchConstraints: {resourceRules: [{apiGroups: [scheduling.x-k8s.io], apiVersions: [v1alpha1], operations: [UPDATE], resources: [queueunits/status]}]},
			validations: [{expression: "false", message: no status here}]}}`,
		`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: no-status}, spec: {
			policyName: no-status, validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ` + s.namespace + `}}}}}`,
	} {
		_, err := cluster.KubectlWith(t.Context(), object, "apply", "-f", "-")
		must(t, err)
	}
	t.Cleanup(func() {
		_, err := cluster.Kubectl(context.Background(), "delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", "no-status")
		must(t, err)
	})
	s.unit("probe", `resource: {cpu: 1}`)
	s.eventually("the policy is in force", func() string {
		_, err := s.units.Patch(t.Context(), "probe", types.MergePatchType, []byte(`{"status": {"message": "probe"}}`), metav1.PatchOptions{}, "status")
		if err == nil || !strings.Contains(err.Error(), "no status here") {
			return fmt.Sprint(err)
		}
		return ""
	})

	var tries atomic.Int64
	config, _, err := cluster.ServiceAccountConfig(t.Context(), "kube-queue-controller")
	must(t, err)
	config.QPS = -1
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return statusTries{rt, s.namespace, &tries} })
	client, err := clientset.NewForConfig(config)
	must(t, err)
	stop := startController(t, func(c *controller.Config) { c.Client = client })

	make := func(namespace, prefix string, n int) {
		t.Helper()
		var made sync.WaitGroup
		const clients = 8
		units := s.objects.Resource(schedulingv1alpha1.SchemeGroupVersion.WithResource("queueunits")).Namespace(namespace)
		for first := range clients {
			made.Go(func() {
				for i := first; i < n; i += clients {
					_, err := units.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
						"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit", "metadata": map[string]any{"name": fmt.Sprintf("%s-%04d", prefix, i)},
						"spec": map[string]any{"consumerRef": map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "name": "t"}, "resource": map[string]any{"cpu": "1"}},
					}}, metav1.CreateOptions{})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		made.Wait()
	}
	// admitted returns how many units of a new namespace are admitted per second.
	admitted := func(namespace string) float64 {
		t.Helper()
		_, err := s.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		must(t, err)
		t.Cleanup(func() { // otherwise they hold quota in the next test
			units := s.objects.Resource(schedulingv1alpha1.SchemeGroupVersion.WithResource("queueunits")).Namespace(namespace)
			must(t, units.DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{}))
		})
		from := time.Now()
		make(namespace, "other", *otherUnits)
		s.eventually("the others are admitted", func() string {
			list, err := client.SchedulingV1alpha1().QueueUnits(namespace).List(t.Context(), metav1.ListOptions{})
			must(t, err)
			waiting := 0
			for _, u := range list.Items {
				if u.Status.Phase != schedulingv1alpha1.PhaseDequeued {
					waiting++
				}
			}
			if waiting > 0 {
				return fmt.Sprintf("%d wait", waiting)
			}
			return ""
		})
		return float64(*otherUnits) / time.Since(from).Seconds()
	}
	before := admitted("before")
	make(s.namespace, "denied", *deniedUnits-1) // the probe is one more
	reported := func() (events []corev1.Event) {
		list, err := s.kube.CoreV1().Events(s.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=StatusDenied"})
		must(t, err)
		return list.Items
	}
	s.eventually("each denied unit is reported", func() string {
		if n := len(reported()); n < *deniedUnits {
			return fmt.Sprintf("%d of %d", n, *deniedUnits)
		}
		return ""
	})
	t.Logf("units that are admitted in a second: %.0f before, %.0f beside %d that are denied", before, admitted("beside"), *deniedUnits)
	stop()
	if n := tries.Load(); n != int64(*deniedUnits) {
		t.Errorf("the status of %d units was written %d times, want once each within five minutes", *deniedUnits, n)
	}
	if n := len(reported()); n != *deniedUnits {
		t.Errorf("%d units have %d events, want one each", *deniedUnits, n)
	}
}
