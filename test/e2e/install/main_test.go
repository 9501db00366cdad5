// Package install tests the installation of kube-queue with its chart, with the programs in pods of
// Deployments, on a real control plane. Each test starts with a cluster without kube-queue.
package install

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kube-queue.dev/kube-queue/test/built"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/podrunner"
)

// suite is shared by all tests. They run one after another, and each removes its installation.
var suite *harness.Suite

// helmPath is the program helm, of the version that renders the manifests.
var helmPath string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "kube-queue-helm-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	helm, err := built.Programs(context.Background(), "hack/helm", "-ldflags=-s -w", "tool")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	helmPath = filepath.Join(helm, "helm")
	if released, err = publish(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := released.stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	if *from != "" {
		if earlier, err = build(folder, *from); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		// A rollback revokes rights that the earlier version did not need while programs that need them still run.
		taken = append(taken, "/")
	}
	return harness.Run(m, clustertest.Options{
		Taken:      taken,
		Bare:       true,
		Operators:  []string{"training-operator"},
		PodRunTime: 2 * time.Second,
	}, func(s *harness.Suite) {
		suite = s
		suite.StatusInterval = 5 * time.Second // as in production, so that the audit checker can judge it
	})
}

// taken are rights that the programs may lack for a moment; see clustertest.Options.
var taken []string

// stage has the Env, the pod runner and the chart of a test.
type stage struct {
	*harness.Env
	t      *testing.T
	runner *podrunner.Runner
}

// begin starts the pod runner. The cleanup removes the installation.
func begin(t *testing.T, changes ...func(*podrunner.Options)) *stage {
	t.Helper()
	folder := filepath.Join(suite.Logs, strings.ToLower(t.Name()))
	harness.Must(t, os.MkdirAll(folder, 0o755))
	options := podrunner.Options{Cluster: suite.Cluster, Programs: suite.Programs, Folder: folder}
	if earlier != nil {
		options.Releases = map[string]string{earlier.tag: earlier.programs}
	}
	for _, change := range changes {
		change(&options)
	}
	runner, err := podrunner.New(options)
	harness.Must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx) }()
	s := &stage{t: t, runner: runner}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the pods logged to %s", folder)
		}
		defer func() { // processes must end even if the rest fails
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}()
		s.remove()
	})
	return s
}

// enter creates the Env, once the CRDs are installed.
func (s *stage) enter(namespace string) { s.Env = suite.Env(s.t, namespace) }

// remove removes all of kube-queue, including CRDs and objects.
func (s *stage) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	for _, what := range [][]string{
		{"deployments,pods,secrets,configmaps,services", "--namespace=" + clustertest.Namespace},
		{clusterKinds() + "mutatingwebhookconfigurations,validatingadmissionpolicies,validatingadmissionpolicybindings,clusterroles,clusterrolebindings,customresourcedefinitions"},
	} {
		selector := "--selector=app.kubernetes.io/part-of=kube-queue"
		if len(what) > 1 {
			selector = "--all"
		}
		// After a conflict with itself, the API server can forget for minutes that it was deleting a CRD. Another
		// request makes it continue.
		err := errors.New("no attempt")
		for err != nil && ctx.Err() == nil {
			attempt, cancel := context.WithTimeout(ctx, 30*time.Second)
			_, err = suite.Kubectl(attempt, append([]string{"delete", "--ignore-not-found", "--wait", selector}, what...)...)
			cancel()
		}
		harness.Must(s.t, err)
	}
	_, err := suite.Kubectl(ctx, "delete", "namespace", clustertest.Namespace, "--ignore-not-found", "--wait")
	harness.Must(s.t, err)
}

// clusterKinds are the kinds that only newer API servers serve, each followed by a comma.
func clusterKinds() string {
	if suite.Kubernetes < "1.36" {
		return ""
	}
	return "mutatingadmissionpolicies,mutatingadmissionpolicybindings,"
}

// programs are the names of both programs, and of their Deployments.
var programs = []string{harness.Controller, harness.Extensions}

// waitForRollout waits until the rollout of both Deployments is complete.
func (s *stage) waitForRollout() {
	s.t.Helper()
	for _, name := range programs {
		_, err := suite.Kubectl(s.t.Context(), "-n", clustertest.Namespace, "rollout", "status", "deployment/"+name, "--timeout=2m")
		harness.Must(s.t, err)
	}
	harness.Must(s.t, suite.WaitForPolicies(s.t.Context()))
}

// waitForAnswer waits until the leading controller answers a review.
func (s *stage) waitForAnswer() {
	s.t.Helper()
	harness.Eventually(s.t, 30*time.Second, "a review is answered", func() (bool, string) {
		out, err := suite.KubectlWith(s.t.Context(), "apiVersion: visibility.kube-queue.dev/v1alpha1\nkind: QuotaReview\nmetadata: {name: q, namespace: default}\n",
			"create", "--dry-run=server", "-o", "jsonpath={.status.observedTime}", "-f", "-")
		return err == nil && out != "", fmt.Sprint(out, err)
	})
}

// pods returns the pods of a program that are not being deleted.
func (s *stage) pods(program string) []corev1.Pod {
	s.t.Helper()
	list, err := s.Kube.CoreV1().Pods(clustertest.Namespace).List(s.t.Context(), metav1.ListOptions{})
	harness.Must(s.t, err)
	var pods []corev1.Pod
	for _, pod := range list.Items {
		if strings.HasPrefix(pod.Name, program+"-") && pod.DeletionTimestamp == nil {
			pods = append(pods, pod)
		}
	}
	return pods
}

func (s *stage) deployment(name string) *appsv1.Deployment {
	s.t.Helper()
	kube, err := kubernetes.NewForConfig(suite.Config())
	harness.Must(s.t, err)
	d, err := kube.AppsV1().Deployments(clustertest.Namespace).Get(s.t.Context(), name, metav1.GetOptions{})
	harness.Must(s.t, err)
	return d
}

// startLog is the log line with the settings in force of each program.
func (s *stage) startLogs(program string) []string {
	s.t.Helper()
	var lines []string
	for _, pod := range s.pods(program) {
		text, err := s.runner.Log(pod.Name)
		harness.Must(s.t, err)
		for line := range strings.Lines(text) {
			if strings.Contains(line, "The program starts") {
				lines = append(lines, line)
			}
		}
	}
	return lines
}
