package harness

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kube-queue.dev/kube-queue/test/freeport"
)

// Program is one of the programs under test. It can be killed and restarted.
type Program struct {
	Name string
	// Kubeconfig is the kubeconfig of the ServiceAccount. It can be changed before a start.
	Kubeconfig string
	// Args and Env are added to those of all programs.
	Args, Env []string
	// Log receives the output.
	Log *os.File

	t        testing.TB
	programs string
	health   string
	// elects enables leader election.
	elects  bool
	metrics string
	// forget deletes the lease, which a killed process cannot release.
	forget func()
	cmd    *exec.Cmd
	ended  chan struct{}
	err    error
}

// Program prepares a program with the rights of its ServiceAccount.
func (s *Suite) Program(t testing.TB, name string, args ...string) *Program {
	t.Helper()
	_, kubeconfig, err := s.ServiceAccountConfig(t.Context(), name)
	Must(t, err)
	p := s.program(t, name, name, args)
	p.Kubeconfig = kubeconfig
	return p
}

// program prepares a program with its own name for the log.
func (s *Suite) program(t testing.TB, name, logName string, args []string) *Program {
	t.Helper()
	log, err := os.Create(filepath.Join(s.Logs, logName+"."+strings.ReplaceAll(t.Name(), "/", ".")+".log"))
	Must(t, err)
	p := &Program{Name: name, Log: log, Args: args, t: t, programs: s.Programs}
	p.forget = func() {
		leases := kubernetes.NewForConfigOrDie(s.Config()).CoordinationV1().Leases("kube-queue")
		if err := leases.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	}
	if name == Controller {
		p.Args = append(p.Args, "--check-invariants", fmt.Sprint("--status-interval=", s.StatusInterval))
	}
	t.Cleanup(func() {
		p.Stop()
		Must(t, log.Close())
		if t.Failed() {
			t.Logf("%s logged to %s", logName, log.Name())
		}
	})
	return p
}

// Start runs the program and returns when it is ready.
func (p *Program) Start() *Program {
	p.t.Helper()
	p.Launch()
	p.WaitReady()
	return p
}

// WaitReady waits until the program is ready.
func (p *Program) WaitReady() {
	p.t.Helper()
	Eventually(p.t, 30*time.Second, p.Name+" is ready", func() (bool, string) {
		if p.HasEnded() {
			return false, fmt.Sprintf("it exited: %v; see %s", p.err, p.Log.Name())
		}
		response, err := http.Get("http://" + p.health + "/readyz")
		if err != nil {
			return false, err.Error()
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK, response.Status
	})
}

// Launch starts the program without waiting.
func (p *Program) Launch() {
	p.t.Helper()
	for _, address := range []*string{&p.health, &p.metrics} {
		var err error
		*address, err = freeport.Address()
		Must(p.t, err)
	}
	args := append([]string{"--kubeconfig", p.Kubeconfig, fmt.Sprintf("--leader-elect=%t", p.elects),
		"--health-bind-address", p.health, "--metrics-bind-address", p.metrics, "-v=2"}, p.Args...)
	p.cmd = exec.Command(filepath.Join(p.programs, p.Name), args...)
	// The detector ends a program that changes a cached object.
	p.cmd.Env = append(append(os.Environ(), "KUBE_CACHE_MUTATION_DETECTOR=true"), p.Env...)
	p.cmd.Stdout, p.cmd.Stderr = p.Log, p.Log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.ended = make(chan struct{})
	Must(p.t, p.cmd.Start())
	go func(cmd *exec.Cmd, ended chan struct{}) {
		p.err = cmd.Wait()
		close(ended)
	}(p.cmd, p.ended)
}

// Stop terminates the program, and fails the test if it does not exit with status 0.
func (p *Program) Stop() {
	if p.cmd == nil {
		return
	}
	p.end(syscall.SIGTERM)
	if p.err != nil {
		text, _ := os.ReadFile(p.Log.Name())
		p.t.Errorf("%s ended with %v; see %s, which ends with\n%s", p.Name, p.err, p.Log.Name(), text[max(len(text)-2000, 0):])
	}
	p.cmd = nil
}

// Kill kills the program.
func (p *Program) Kill() {
	p.end(syscall.SIGKILL)
	p.cmd = nil
	p.Forget()
}

// Forget deletes the lease of a killed process if there is only one replica. Without this, the next process would
// wait until the lease expires.
func (p *Program) Forget() {
	if !p.elects {
		p.forget()
	}
}

// Freeze stops the process with SIGSTOP until Thaw.
func (p *Program) Freeze() { Must(p.t, p.cmd.Process.Signal(syscall.SIGSTOP)) }

// Thaw continues a frozen process.
func (p *Program) Thaw() { Must(p.t, p.cmd.Process.Signal(syscall.SIGCONT)) }

func (p *Program) end(signal syscall.Signal) {
	_ = p.cmd.Process.Signal(syscall.SIGCONT) // it may still be frozen after a failed test
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Error(err)
	}
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		p.t.Errorf("%s did not end within 20 s of %v", p.Name, signal)
		p.cmd.Process.Kill()
		<-p.ended
	}
}

// Ended returns a channel that is closed when the last process has exited. Err then returns its
// error.
func (p *Program) Ended() <-chan struct{} { return p.ended }

// HasEnded reports whether the last process has exited.
func (p *Program) HasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Err returns the error that the program exited with.
func (p *Program) Err() error { return p.err }

// Strike kills the program without waiting.
func (p *Program) Strike() error { return p.cmd.Process.Kill() }

// Both starts both programs. enabled is the value of --enabled-extensions.
func (s *Suite) Both(t testing.TB, enabled string, controllerArgs ...string) (controller, extensions *Program) {
	t.Helper()
	return s.BothWith(t, enabled, nil, controllerArgs...)
}

// BothWith is like Both, with additional environment variables for the controller.
func (s *Suite) BothWith(t testing.TB, enabled string, env []string, controllerArgs ...string) (controller, extensions *Program) {
	t.Helper()
	controller = s.Program(t, Controller, controllerArgs...)
	controller.Env = env
	extensions = s.Program(t, Extensions, "--enabled-extensions="+enabled)
	controller.Start()
	extensions.Start()
	return controller, extensions
}
