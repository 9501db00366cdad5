package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

const (
	controller = "kube-queue-controller"
	extensions = "job-extensions"
)

// buildPrograms builds what is tested, with the race detector: what it finds ends
// the program, and so the test.
func buildPrograms(dir string) error {
	cmd := exec.Command("go", "build", "-race", "-o", dir+string(filepath.Separator),
		"kube-queue.dev/kube-queue/cmd/"+controller, "kube-queue.dev/kube-queue/cmd/"+extensions)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the programs: %w\n%s", err, out)
	}
	return nil
}

// program is one of the programs under test, which may be killed and started
// again.
type program struct {
	t          testing.TB
	name       string
	kubeconfig string
	args, env  []string
	log        *os.File

	health string
	cmd    *exec.Cmd
	ended  chan struct{}
	err    error
}

// newProgram prepares a program that runs as its ServiceAccount.
func newProgram(t testing.TB, name string, args ...string) *program {
	t.Helper()
	_, kubeconfig, err := cluster.ServiceAccountConfig(t.Context(), name)
	must(t, err)
	log, err := os.Create(filepath.Join(cluster.Logs, name+"."+filepath.Base(t.Name())+".log"))
	must(t, err)
	p := &program{t: t, name: name, kubeconfig: kubeconfig, log: log, args: args}
	if name == controller {
		p.args = append(p.args, "--check-invariants")
	}
	t.Cleanup(func() {
		p.stop()
		must(t, log.Close())
		if t.Failed() {
			t.Logf("%s logged to %s", name, log.Name())
		}
	})
	return p
}

// start runs the program and returns when it is ready.
func (p *program) start() *program {
	p.t.Helper()
	p.launch()
	p.waitReady()
	return p
}

func (p *program) waitReady() {
	p.t.Helper()
	eventually(p.t, 30*time.Second, p.name+" is ready", func() (bool, string) {
		select {
		case <-p.ended:
			return false, fmt.Sprintf("it has ended: %v; see %s", p.err, p.log.Name())
		default:
		}
		response, err := http.Get("http://" + p.health + "/readyz")
		if err != nil {
			return false, err.Error()
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK, response.Status
	})
}

func (p *program) launch() {
	p.t.Helper()
	p.health = freeAddress(p.t)
	args := append([]string{"--kubeconfig", p.kubeconfig, "--leader-elect=false", "--health-bind-address", p.health, "-v=2"}, p.args...)
	p.cmd = exec.Command(filepath.Join(binaries, p.name), args...)
	p.cmd.Env = append(os.Environ(), p.env...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.ended = make(chan struct{})
	must(p.t, p.cmd.Start())
	go func(cmd *exec.Cmd, ended chan struct{}) {
		p.err = cmd.Wait()
		close(ended)
	}(p.cmd, p.ended)
}

// stop ends the program in order, and fails the test when it did not end so.
func (p *program) stop() {
	if p.cmd == nil {
		return
	}
	p.end(syscall.SIGTERM)
	if p.err != nil {
		p.t.Errorf("%s ended with %v; see %s", p.name, p.err, p.log.Name())
	}
	p.cmd = nil
}

// kill ends the program at once.
func (p *program) kill() {
	p.end(syscall.SIGKILL)
	p.cmd = nil
}

func (p *program) end(signal syscall.Signal) {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Error(err)
	}
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		p.t.Errorf("%s did not end within 20 s of %v", p.name, signal)
		p.cmd.Process.Kill()
		<-p.ended
	}
}

// both starts both programs.
func both(t testing.TB, controllerArgs ...string) (c, e *program) {
	t.Helper()
	c = newProgram(t, controller, controllerArgs...)
	e = newProgram(t, extensions, "--enabled-extensions=tfjob,pytorchjob,job")
	c.start()
	e.start()
	return c, e
}

func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, listener.Close())
	return listener.Addr().String()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until done says so, and fails the test with the last state
// that it told when that takes too long.
func eventually(t testing.TB, timeout time.Duration, what string, done func() (bool, string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, state := done()
		if ok {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waited %v in vain until %s; last seen: %s", timeout, what, state)
		case <-tick.C:
		}
	}
}

// never watches for a while that something does not come true.
func never(t testing.TB, during time.Duration, what string, happens func() (bool, string)) {
	t.Helper()
	end := time.NewTimer(during)
	defer end.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if yes, state := happens(); yes {
			t.Fatalf("%s: %s", what, state)
		}
		select {
		case <-end.C:
			return
		case <-tick.C:
		}
	}
}
