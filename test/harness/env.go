package harness

import (
	"context"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"kube-queue.dev/kube-queue/pkg/generated/clientset/versioned"
	"kube-queue.dev/kube-queue/test/audit"
)

// Env is what one test works with: a namespace and clients. Its cleanup removes
// every job, tree and unit, and has the audit log checked.
type Env struct {
	Namespace string
	Dynamic   dynamic.Interface
	Kube      kubernetes.Interface
	Queue     versioned.Interface
	Audit     audit.Options
	// Allowed are the checks that the test breaks on purpose.
	Allowed []string

	t     testing.TB
	suite *Suite
}

// Env works in the namespace, which is made if it is not there.
func (s *Suite) Env(t testing.TB, namespace string) *Env {
	t.Helper()
	l := s.env(t, namespace)
	t.Cleanup(func() {
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		l.Clean(ctx)
		l.Check(ctx)
	})
	return l
}

// Part is an Env for a part of a test, in a namespace of its own. The tree and the
// check of the audit log are the whole test's.
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

// For is the same Env for a subtest, which fails alone. What it leaves is cleaned
// with the whole.
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
	l.Queue, err = versioned.NewForConfig(config)
	Must(t, err)
	l.EnsureNamespace(namespace)
	return l
}

// EnsureNamespace makes the namespace if it is not there.
func (l *Env) EnsureNamespace(name string) {
	l.t.Helper()
	out, err := l.suite.KubectlWith(l.t.Context(), "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+name+"}\n", "apply", "-f", "-")
	if err != nil {
		l.t.Fatal(err, out)
	}
}
