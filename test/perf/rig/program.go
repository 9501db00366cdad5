package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"kube-queue.dev/kube-queue/test/freeport"
)

const (
	// readyTimeout is how long a program may take to be ready. After a kill the next process waits
	// for the lease of the previous one.
	readyTimeout = time.Minute
	// stopGrace is how long a program may take to terminate before it is killed.
	stopGrace = 20 * time.Second
)

// Program is a running program of kube-queue, or another command.
type Program struct {
	Name string
	// PID is also the process group.
	PID int
	// Log is the path of the output.
	Log string

	// health and profiles are addresses of a program of kube-queue. Another command has none, and may exit with any
	// status after a signal.
	health, profiles string
	// asked reports that Stop or Kill was called.
	asked atomic.Bool
	ended chan struct{}
	err   error
}

// Run starts a program with the rights of its ServiceAccount and with additional environment
// variables, and returns when it is ready.
func (r *Rig) Run(ctx context.Context, name string, env []string, args ...string) (*Program, error) {
	p, err := r.Launch(ctx, name, env, args...)
	if err != nil {
		return nil, err
	}
	return p, p.ready(ctx)
}

// Launch starts a program without waiting until it is ready.
func (r *Rig) Launch(ctx context.Context, name string, env []string, args ...string) (*Program, error) {
	_, kubeconfig, err := r.Cluster.ServiceAccountConfig(ctx, name)
	health, healthErr := freeport.Address()
	profiles, profilesErr := freeport.Address()
	if err := errors.Join(err, healthErr, profilesErr); err != nil {
		return nil, err
	}
	args = append([]string{"--kubeconfig", kubeconfig, "--health-bind-address", health, "--metrics-bind-address=0",
		"--profiling-bind-address", profiles}, args...)
	p := &Program{Name: name, health: "http://" + health, profiles: "http://" + profiles}
	if err := r.begin(p, exec.Command(filepath.Join(r.programs, name), args...), env...); err != nil {
		return nil, err
	}
	if r.profiles != "" {
		go r.profile(name, http.DefaultClient, p.profiles, p.ended)
	}
	return p, nil
}

// Command starts a shell command. It finds the cluster through KUBECONFIG, and a kubectl of the cluster's version in
// PATH. Its child processes are measured and end with it.
func (r *Rig) Command(name, command string) (*Program, error) {
	p := &Program{Name: name}
	return p, r.begin(p, exec.Command("sh", "-c", command),
		"KUBECONFIG="+r.Cluster.Kubeconfig, "PATH="+filepath.Dir(r.Cluster.KubectlPath)+":"+os.Getenv("PATH"))
}

func (r *Rig) begin(p *Program, cmd *exec.Cmd, env ...string) error {
	p.ended = make(chan struct{})
	p.Log = filepath.Join(r.Cluster.Logs, p.Name+".log")
	// A restarted program appends to its log.
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	// The program ends with this tool. Ctrl-C goes only to the tool, which then stops the program.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	p.PID = cmd.Process.Pid
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[p.Name] = p
	go func() {
		p.err = cmd.Wait()
		r.mu.Lock()
		delete(r.running, p.Name)
		r.mu.Unlock()
		close(p.ended)
		if !p.asked.Load() {
			r.Exited(fmt.Errorf("%s exited unexpectedly: %v; see %s", p.Name, p.err, p.Log))
		}
	}()
	return nil
}

// ready waits until the program is ready.
func (p *Program) ready(ctx context.Context) error {
	late := fmt.Errorf("%s is not ready after %v; see %s", p.Name, readyTimeout, p.Log)
	return Until(ctx, 20*time.Millisecond, readyTimeout, late, func(ctx context.Context) (bool, error) {
		select {
		case <-p.ended:
			return false, fmt.Errorf("%s exited before it was ready: %w; see %s", p.Name, p.err, p.Log)
		default:
			_, err := get(ctx, http.DefaultClient, p.health+"/readyz")
			return err == nil, nil
		}
	})
}

// Stop terminates the program. A program of kube-queue must exit without an error.
func (p *Program) Stop() error {
	p.end(syscall.SIGTERM)
	if p.err != nil && p.health != "" {
		return fmt.Errorf("%s ended with %w; see %s", p.Name, p.err, p.Log)
	}
	return nil
}

// Kill kills the program.
func (p *Program) Kill() { p.end(syscall.SIGKILL) }

// end signals the process group of the program and waits until the program has ended. It then kills remaining
// children.
func (p *Program) end(signal syscall.Signal) {
	p.asked.Store(true)
	kill := func() { _ = syscall.Kill(-p.PID, syscall.SIGKILL) }
	_ = syscall.Kill(-p.PID, signal)
	late := time.AfterFunc(stopGrace, kill)
	<-p.ended
	late.Stop()
	kill()
}

// profilesOf is the path of profiles, in our programs and in the API server, which serves them by default.
const profilesOf = "/debug/pprof/"

// profile writes CPU and heap profiles of a program to the folder Options.Profiles until the program has ended, as
// NAME.TIME.cpu.pprof and NAME.TIME.heap.pprof. A program that has just started serves none yet.
func (r *Rig) profile(name string, client *http.Client, server string, ended <-chan struct{}) {
	wait.Until(func() {
		file := filepath.Join(r.profiles, name+"."+time.Now().Format("150405"))
		for _, what := range []struct{ kind, path string }{{"heap", "heap"}, {"cpu", "profile?seconds=5"}} {
			profile, err := get(context.Background(), client, server+profilesOf+what.path)
			if err != nil {
				continue
			}
			if err := os.WriteFile(file+"."+what.kind+".pprof", profile, 0o644); err != nil {
				fmt.Fprintln(os.Stderr, "perf:", err)
			}
		}
	}, 100*time.Millisecond, ended)
}

// get returns the body of a successful response.
func get(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: the response status is %s", address, response.Status)
	}
	return io.ReadAll(response.Body)
}
