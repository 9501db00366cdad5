package harness

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"kube-queue.dev/kube-queue/pkg/clientset"
	"kube-queue.dev/kube-queue/test/audit"
)

// Env is the environment of one test: a namespace and clients. Its cleanup removes all jobs, trees
// and units, and runs the audit checker.
type Env struct {
	Namespace string
	Dynamic   dynamic.Interface
	Kube      kubernetes.Interface
	Queue     *clientset.Clientset
	Audit     audit.Options
	// Allowed are the checks that the test violates on purpose.
	Allowed []string

	t     testing.TB
	suite *Suite
}

// Env returns an Env in the namespace, which it creates if needed.
func (s *Suite) Env(t testing.TB, namespace string) *Env {
	t.Helper()
	l := s.env(t, namespace)
	t.Cleanup(func() {
		// The context of the test is already done.
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		l.Clean(ctx)
		l.Check(ctx)
	})
	return l
}

// Part returns an Env for a part of a test, with its own namespace. The complete test has one tree
// and one run of the audit checker.
func (s *Suite) Part(t testing.TB, namespace string) *Env {
	t.Helper()
	l := s.env(t, namespace)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		l.clearJobs(ctx)
		l.clearQuotas(ctx)
		l.waitForNothing(ctx)
	})
	return l
}

// For returns the same Env for a subtest, so that failures are reported for the subtest. The parent cleans up.
func (l *Env) For(t testing.TB) *Env {
	part := *l
	part.t = t
	return &part
}

func (s *Suite) env(t testing.TB, namespace string) *Env {
	t.Helper()
	config := s.Config()
	l := &Env{t: t, suite: s, Namespace: namespace}
	var err error
	l.Dynamic, err = dynamic.NewForConfig(config)
	Must(t, err)
	l.Kube, err = kubernetes.NewForConfig(config)
	Must(t, err)
	l.Queue, err = clientset.NewForConfig(config)
	Must(t, err)
	l.EnsureNamespace(namespace)
	return l
}

// As returns a client that acts as the user.
func (l *Env) As(user string) dynamic.Interface {
	l.t.Helper()
	config := l.suite.Config()
	config.Impersonate.UserName = user
	client, err := dynamic.NewForConfig(config)
	Must(l.t, err)
	return client
}

// Manage labels the namespace as managed, and waits until this is in effect for new jobs.
func (l *Env) Manage() {
	l.t.Helper()
	_, err := l.suite.Kubectl(l.t.Context(), "label", "namespace", l.Namespace, "kube-queue/managed=true", "--overwrite")
	Must(l.t, err)
	probe := "apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: probe-, namespace: " + l.Namespace +
		", labels: {kueue.x-k8s.io/queue-name: other}}\nspec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}}}\n"
	Eventually(l.t, time.Minute, "namespace "+l.Namespace+" is managed", func() (bool, string) {
		out, err := l.suite.KubectlWith(l.t.Context(), probe, "create", "--dry-run=server", "-f", "-")
		return err != nil && strings.Contains(err.Error(), "namespace is managed by kube-queue"), fmt.Sprint(out, err)
	})
}

// EnsureNamespace creates the namespace if it does not exist, and waits for its ServiceAccount
// default. The API server refuses pods until it exists, and Argo Workflows does not try again.
func (l *Env) EnsureNamespace(name string) {
	l.t.Helper()
	_, err := l.Kube.CoreV1().Namespaces().Create(l.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		Must(l.t, err)
	}
	Eventually(l.t, time.Minute, "namespace "+name+" has its default ServiceAccount", func() (bool, string) {
		_, err := l.Kube.CoreV1().ServiceAccounts(name).Get(l.t.Context(), "default", metav1.GetOptions{})
		return err == nil, fmt.Sprint(err)
	})
}
