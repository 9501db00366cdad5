package lab

import (
	"context"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"kube-queue.dev/kube-queue/pkg/generated/clientset/versioned"
	"kube-queue.dev/kube-queue/test/audit"
)

// Lab is what one test works with: a namespace and clients. Its cleanup removes
// every job, tree and unit, and has the audit log checked.
type Lab struct {
	Namespace string
	Dynamic   dynamic.Interface
	Kube      kubernetes.Interface
	Queue     versioned.Interface
	Audit     audit.Options
	// Allowed are the checks that the test breaks on purpose.
	Allowed []string

	t    testing.TB
	site *Site
}

// Lab works in the namespace, which is made if it is not there.
func (s *Site) Lab(t testing.TB, namespace string) *Lab {
	t.Helper()
	l := s.lab(t, namespace)
	t.Cleanup(func() {
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		l.Clean(ctx)
		l.Check(ctx)
	})
	return l
}

// Part is a lab for a part of a test, in a namespace of its own. The tree and the
// check of the audit log are the whole test's.
func (s *Site) Part(t testing.TB, namespace string) *Lab {
	t.Helper()
	l := s.lab(t, namespace)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		l.clearJobs(ctx)
		l.clearQuotas(ctx)
		l.waitForNothing(ctx)
	})
	return l
}

// For is the same lab for a subtest, which fails alone. What it leaves is cleaned
// with the whole.
func (l *Lab) For(t testing.TB) *Lab {
	part := *l
	part.t = t
	return &part
}

func (s *Site) lab(t testing.TB, namespace string) *Lab {
	t.Helper()
	config := s.Config()
	l := &Lab{t: t, site: s, Namespace: namespace}
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
func (l *Lab) EnsureNamespace(name string) {
	l.t.Helper()
	out, err := l.site.KubectlWith(l.t.Context(), "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+name+"}\n", "apply", "-f", "-")
	if err != nil {
		l.t.Fatal(err, out)
	}
}
