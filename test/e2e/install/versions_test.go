//go:build versions

package install

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

// These tests run on the Kubernetes version in KUBE_QUEUE_KUBERNETES, in make test-versions.

// An API server that has just started refuses everything until it has read the roles, and a pod that is being
// replaced may read its certificate after the role of the next one is in force.
func init() { taken = []string{"/"} }

func (s *stage) holdsBy() (policy, webhook bool) {
	s.t.Helper()
	get := func(resource string) bool {
		out, err := suite.Kubectl(s.t.Context(), "get", resource, "-l", "app.kubernetes.io/part-of=kube-queue", "-o", "name")
		harness.Must(s.t, err)
		return strings.Contains(out, "/kube-queue-hold") // another webhook answers reviews
	}
	return suite.Kubernetes >= "1.36" && get("mutatingadmissionpolicies"), get("mutatingwebhookconfigurations")
}

func TestVersionsHoldJobsAsTheChartIsRenderedForThem(t *testing.T) {
	s := begin(t)
	s.install()
	if policy, webhook := s.holdsBy(); policy == webhook || policy != (suite.Kubernetes >= "1.36") {
		t.Fatalf("Kubernetes %s holds by policy %t, by webhook %t", suite.Kubernetes, policy, webhook)
	}
	s.enter("versions")
	s.Tree(`{cpu: "4", memory: 8Gi}`)
	pair, more := s.Read("tfjob-pair.yaml"), pytorchJob("torch", 2*time.Second)+harness.Job{Name: "marked", CPU: "1", Runs: 2 * time.Second, Marked: true}.String()
	s.Apply(pair)
	// Applying a manifest again stops no running job and releases no waiting job: each job is released once.
	s.Apply(pair)
	s.WaitForPhase("TFJob", "job1", schedulingv1alpha1.PhaseRunning, schedulingv1alpha1.PhaseSucceeded)
	s.Apply(pair)
	s.Apply(more)
	for kind, name := range map[string]string{"PyTorchJob": "torch", "Job": "marked"} {
		s.WaitForUnit(kind, name)
	}
	s.Apply(more)
	for _, job := range [][2]string{{"TFJob", "job1"}, {"TFJob", "job2"}, {"PyTorchJob", "torch"}, {"Job", "marked"}} {
		if unit := s.WaitForPhase(job[0], job[1], schedulingv1alpha1.PhaseSucceeded); unit.Status.Attempts != 1 {
			t.Errorf("%s %s was released %d times", job[0], job[1], unit.Status.Attempts)
		}
	}

	s.Manage()
	s.Apply(harness.Job{Name: "unmarked", CPU: "1", Runs: 2 * time.Second, Unheld: true}.String())
	unit := s.WaitForPhase("Job", "unmarked", schedulingv1alpha1.PhaseSucceeded)
	if unit.Status.Attempts != 1 {
		t.Errorf("the job of the managed namespace was released %d times", unit.Status.Attempts)
	}
	s.ExpectFree()
}

// 500 marked jobs are created while the leader is killed and the certificate is replaced.
func TestVersionsHoldOrRefuseEachJobOfABurst(t *testing.T) {
	s := begin(t)
	s.install("holdPolicies.by=webhook")
	s.enter("burst")
	s.Allowed = []string{"held-after-end"} // until another leader has the lease
	s.Tree(`{cpu: "8"}`)
	const burst, creators = 500, 8
	creator := s.creator(suite.Config().Host, s.Dynamic)
	var number atomic.Int32
	var group sync.WaitGroup
	for range creators {
		group.Go(func() {
			for n := number.Add(1); n <= burst; n = number.Add(1) {
				creator.create(fmt.Sprintf("burst-%d", n), "20m")
				switch n {
				case burst / 4:
					s.replaceCertificate()
				case burst / 2:
					if err := s.runner.Kill(s.leader(harness.Extensions)); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	group.Wait()
	held, refused := creator.result()
	t.Logf("%d jobs were held, %d were refused, for example: %s", held, refused, creator.example)
	if held+refused != burst || held < burst/2 {
		t.Errorf("%d jobs were held and %d were refused, of %d", held, refused, burst)
	}
	s.waitForEndedJobs(held)
	s.ExpectFree()
}

// leader returns the pod that holds the lease of a program.
func (s *stage) leader(program string) string {
	holder := s.Holder(program)
	for _, pod := range s.pods(program) {
		text, err := s.runner.Log(pod.Name)
		if err == nil && holder != "" && strings.Contains(text, holder) && strings.Contains(text, `identity="`+holder) {
			return pod.Name
		}
	}
	return ""
}

// replaceCertificate removes the certificate from the Secret, so that the leader creates a new one.
func (s *stage) replaceCertificate() {
	_, err := suite.Kubectl(s.t.Context(), "-n", clustertest.Namespace, "patch", "secret", "job-extensions-webhook", "--type=json", `--patch=[{"op": "remove", "path": "/data"}]`)
	if err != nil {
		s.t.Error(err)
	}
}

// creator creates marked jobs, and checks that each is held from its creation.
type creator struct {
	t    *testing.T
	host string
	jobs dynamic.ResourceInterface

	mu            sync.Mutex
	held, refused int
	example       string
}

func (s *stage) creator(host string, client dynamic.Interface) *creator {
	return &creator{t: s.t, host: host, jobs: client.Resource(harness.Jobs).Namespace(s.Namespace)}
}

func (c *creator) create(name, cpu string) {
	var job unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(strings.TrimSuffix(harness.Job{Name: name, CPU: cpu, Runs: 100 * time.Millisecond, Marked: true}.String(), "---\n")), &job.Object); err != nil {
		c.t.Error(err)
		return
	}
	created, err := c.jobs.Create(c.t.Context(), &job, metav1.CreateOptions{})
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.refused++
		c.example = err.Error()
		return
	}
	c.held++
	if suspended, _, _ := unstructured.NestedBool(created.Object, "spec", "suspend"); !suspended {
		c.t.Errorf("%s was created without being held, by %s", name, c.host)
	}
}

func (c *creator) result() (held, refused int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held, c.refused
}

func (s *stage) waitForEndedJobs(count int) {
	s.t.Helper()
	harness.Eventually(s.t, 5*time.Minute, fmt.Sprintf("%d jobs have ended", count), func() (bool, string) {
		ended := s.ended()
		return ended == count, fmt.Sprintf("%d have", ended)
	})
}

// flow creates jobs until it is stopped, at both API servers if there are two.
type flow struct {
	creators []*creator
	stop     context.CancelFunc
	ended    chan struct{}
}

func (s *stage) flow(name string, creators ...*creator) *flow {
	ctx, stop := context.WithCancel(s.t.Context())
	f := &flow{creators: creators, stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(f.ended)
		number := 0
		_ = wait.PollUntilContextCancel(ctx, 150*time.Millisecond, true, func(context.Context) (bool, error) {
			for i, c := range creators {
				c.create(fmt.Sprintf("%s-%d-%d", name, i, number), "50m")
			}
			number++
			return false, nil
		})
	}()
	s.t.Cleanup(func() { f.end() })
	return f
}

// end returns how many jobs were held and refused.
func (f *flow) end() (held, refused int) {
	f.stop()
	<-f.ended
	for _, c := range f.creators {
		h, r := c.result()
		held, refused = held+h, refused+r
	}
	return held, refused
}

// The test goes from Kubernetes 1.34 with the webhook to 1.36 with policies, on the same data, while jobs wait, run
// and are created, and even while there is an API server of each version. No job is ever unheld.
func TestVersionsChangeWhatHoldsJobsWithoutAGap(t *testing.T) {
	if suite.Kubernetes >= "1.36" {
		s := begin(t)
		s.fromWebhookToPolicies("gap", nil)
		return
	}
	s := begin(t)
	s.fromWebhookToPolicies("gap", func() {
		harness.Must(t, suite.Upgrade(t.Context(), "1.36"))
		s.waitForRollout()
	})
}

func (s *stage) fromWebhookToPolicies(namespace string, upgrade func()) {
	t := s.t
	older := suite.Kubernetes
	s.install("holdPolicies.by=webhook")
	s.enter(namespace)
	s.Allowed = []string{"held-after-end"} // while the API server is down, and until clients reconnect
	s.Tree(`{cpu: "4"}`)
	s.Apply(tfjob("long", "1", harness.UntilFinished))
	s.WaitForPhase("TFJob", "long", schedulingv1alpha1.PhaseRunning)
	s.Apply(harness.Job{Name: "large", CPU: "4", Runs: time.Second, Marked: true}.String())
	s.WaitForUnit("Job", "large")

	total := 0
	report := func(step string, f *flow) {
		held, refused := f.end()
		total += held
		t.Logf("%s: %d jobs were held, %d were refused", step, held, refused)
		if held < 10 {
			t.Errorf("%s: only %d jobs were created", step, held)
		}
	}
	creator := s.creator("the API server", s.Dynamic)
	if upgrade != nil {
		f := s.flow("upgrade", creator)
		upgrade()
		report("upgrade of the API server", f)

		// Both versions at once, with webhook and policies.
		other, err := suite.StartSecondAPIServer(t.Context(), older)
		harness.Must(t, err)
		config, err := clientcmd.BuildConfigFromFlags("", other)
		harness.Must(t, err)
		client, err := dynamic.NewForConfig(config)
		harness.Must(t, err)
		f = s.flow("beside", s.creator("the API server", s.Dynamic), s.creator("the older API server", client))
		s.helm("upgrade", s.values(allKinds), "--wait") // auto
		if policy, webhook := s.holdsBy(); !policy || !webhook {
			t.Errorf("after the upgrade jobs are held by policy %t, by webhook %t; want both", policy, webhook)
		}
		s.waitForRollout()
		report("API servers of two versions", f)
		harness.Must(t, suite.StopSecondAPIServer(t.Context()))
	}
	f := s.flow("policies", s.creator("the API server", s.Dynamic))
	s.helm("upgrade", s.values(allKinds), "--set=holdPolicies.by=both", "--wait")
	s.waitForRollout()
	s.helm("upgrade", s.values(allKinds), "--set=holdPolicies.by=policy", "--wait")
	s.waitForRollout()
	if policy, webhook := s.holdsBy(); !policy || webhook {
		t.Errorf("jobs are held by policy %t, by webhook %t; want policy", policy, webhook)
	}
	report("from both to policies", f)

	if unit := s.WaitForUnit("Job", "large"); unit.Status.Attempts != 0 {
		t.Errorf("the large job was released beside the long one")
	}
	s.Finish(harness.TFJobs, "long")
	s.WaitForPhase("Job", "large", schedulingv1alpha1.PhaseSucceeded)
	s.waitForEndedJobs(total + 2)
	s.ExpectFree()
}
