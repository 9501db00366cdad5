package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/faultproxy"
)

// Replica is one of several replicas of a program with leader election. Each has its own proxy to
// the API server.
type Replica struct {
	*Program
	Proxy *faultproxy.Proxy
	// Label is the name in logs.
	Label string

	suite *Suite
	lives int
}

// Replica prepares the n-th replica of a program.
func (s *Suite) Replica(t testing.TB, name string, n int, args ...string) *Replica {
	t.Helper()
	proxy, err := faultproxy.Start(s.Config())
	Must(t, err)
	t.Cleanup(proxy.Close) // runs after the cleanup of the program
	label := fmt.Sprintf("%s-%d", name, n)
	r := &Replica{Program: s.program(t, name, label, args), Proxy: proxy, Label: label, suite: s}
	r.elects = true
	return r
}

// Launch starts a process of the replica without waiting. Each process has its own token.
func (r *Replica) Launch() {
	r.t.Helper()
	r.lives++
	direct := filepath.Join(r.suite.Data, fmt.Sprintf("%s.%d.kubeconfig", r.Label, r.lives))
	Must(r.t, r.suite.WriteKubeconfig(r.t.Context(), r.Name, direct))
	var err error
	r.Kubeconfig, err = r.Proxy.Kubeconfig(direct)
	Must(r.t, err)
	r.Program.Launch()
}

// Start starts a process and returns when it is ready: it is the leader, or knows the leader.
func (r *Replica) Start() *Replica {
	r.t.Helper()
	r.Launch()
	r.WaitReady()
	return r
}

// WaitLost waits until the process exits because it has lost its lease.
func (r *Replica) WaitLost(timeout time.Duration) {
	r.t.Helper()
	Eventually(r.t, timeout, r.Label+" exits after it has lost its lease", func() (bool, string) { return r.HasEnded(), "it runs" })
	if exit, is := errors.AsType[*exec.ExitError](r.Err()); !is || exit.ExitCode() != 1 {
		r.t.Errorf("%s ended with %v, want status 1; see %s", r.Label, r.Err(), r.Log.Name())
	}
	r.cmd = nil
}

var identity = regexp.MustCompile(`"Waiting for the lease".* identity="([^"]+)"`)

// Identity returns the name by which the last process holds the lease.
func (r *Replica) Identity() string {
	r.t.Helper()
	log, err := os.ReadFile(r.Log.Name())
	Must(r.t, err)
	all := identity.FindAllSubmatch(log, -1)
	if len(all) < r.lives {
		return ""
	}
	return string(all[len(all)-1][1])
}

// Holder returns the holder of a program's lease, or "".
func (l *Env) Holder(program string) string {
	l.t.Helper()
	lease, err := l.Kube.CoordinationV1().Leases(clustertest.Namespace).Get(l.t.Context(), program, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	Must(l.t, err)
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// Leader waits until a replica holds the lease of the program, and returns it.
func (l *Env) Leader(replicas ...*Replica) (leader *Replica) {
	l.t.Helper()
	Eventually(l.t, time.Minute, "a replica holds the lease of "+replicas[0].Name, func() (bool, string) {
		holder := l.Holder(replicas[0].Name)
		for _, r := range replicas {
			if holder != "" && r.Identity() == holder {
				leader = r
			}
		}
		return leader != nil, fmt.Sprintf("%q holds it", holder)
	})
	return leader
}
