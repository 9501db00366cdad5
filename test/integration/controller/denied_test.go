package controller

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
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

// statusWrites counts the writes of the status of each unit, by its path.
type statusWrites struct {
	http.RoundTripper
	mu   *sync.Mutex
	seen map[string]int
}

func (c statusWrites) RoundTrip(r *http.Request) (*http.Response, error) {
	if path := r.URL.Path; r.Method != http.MethodGet && strings.Contains(path, "/queueunits/") && strings.HasSuffix(path, "/status") {
		c.mu.Lock()
		c.seen[path]++
		c.mu.Unlock()
	}
	return c.RoundTripper.RoundTrip(r)
}

// of returns how many units of the namespace were written, and how often.
func (c statusWrites) of(namespace string) (units, writes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for path, n := range c.seen {
		if strings.Contains(path, "/"+namespace+"/queueunits/") {
			units, writes = units+1, writes+n
		}
	}
	return units, writes
}

// There are far more units than workers; in make test-all, 1,000 are denied. With -v, the test prints the rates.
func TestUnitsWhoseStatusIsDeniedHoldUpNoOthers(t *testing.T) {
	deniedUnits, otherUnits, rounds := 1000, 1000, 4
	if testing.Short() {
		deniedUnits, otherUnits, rounds = 40, 100, 1
	}
	s := newStage(t)
	_, err := s.trees().Patch(t.Context(), "tree", types.MergePatchType,
		[]byte(`{"spec": {"root": {"max": {"cpu": 1000000}, "namespaces": ["`+s.namespace+`", "more", "before", "beside"]}}}`), metav1.PatchOptions{})
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

	sent := statusWrites{mu: &sync.Mutex{}, seen: map[string]int{}}
	config, _, err := cluster.ServiceAccountConfig(t.Context(), "kube-queue-controller")
	must(t, err)
	config.QPS = -1
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return statusWrites{rt, sent.mu, sent.seen} })
	client, err := clientset.NewForConfig(config)
	must(t, err)
	stop := startController(t, func(c *controller.Config) {
		c.Client, c.CheckInvariants = client, testing.Short() // the check after each event takes longer than the admissions
	})

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
	remove := func(namespace string) {
		t.Helper()
		must(t, s.objects.Resource(schedulingv1alpha1.SchemeGroupVersion.WithResource("queueunits")).Namespace(namespace).
			DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	}
	// admitted returns how many units of the namespace are admitted per second.
	admitted := func(namespace, prefix string) float64 {
		t.Helper()
		from := time.Now()
		make(namespace, prefix, otherUnits)
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
		return float64(otherUnits) / time.Since(from).Seconds()
	}
	reported := func() (events []corev1.Event) {
		list, err := s.kube.CoreV1().Events(s.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=StatusDenied"})
		must(t, err)
		return list.Items
	}
	for _, namespace := range []string{"more", "before", "beside"} {
		_, err := s.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		must(t, err)
	}
	for round := range rounds {
		prefix := fmt.Sprintf("round-%d", round)
		admitted("more", prefix) // as many as are denied below
		before := admitted("before", prefix)
		remove("more")
		remove("before")
		make(s.namespace, prefix, deniedUnits)
		s.eventually("each denied unit is reported", func() string {
			if n, want := len(reported()), (round+1)*deniedUnits+1; n < want { // the probe is one more
				return fmt.Sprintf("%d of %d", n, want)
			}
			return ""
		})
		t.Logf("units that are admitted in a second: %.0f before, %.0f beside %d that are denied", before, admitted("beside", prefix), deniedUnits)
		remove(s.namespace)
		remove("beside")
	}
	stop()
	for namespace, want := range map[string]int{s.namespace: rounds*deniedUnits + 1, "before": rounds * otherUnits, "beside": rounds * otherUnits} {
		if units, writes := sent.of(namespace); units != want || writes != want {
			t.Errorf("in namespace %s, the status of %d units was written %d times, want %d, once each", namespace, units, writes, want)
		}
	}
	said := map[string]int32{}
	for _, event := range reported() {
		if said[event.InvolvedObject.Name] += max(event.Count, 1); said[event.InvolvedObject.Name] > 1 {
			t.Errorf("unit %s is reported more than once", event.InvolvedObject.Name)
		}
	}
	if want := rounds*deniedUnits + 1; len(said) != want {
		t.Errorf("%d units are reported, want %d", len(said), want)
	}
}
