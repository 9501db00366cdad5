// Package clustertest starts real clusters with the manifests of kube-queue for tests and for
// the demo.
//
// It builds the cluster of test/localcluster and runs it as a program. The cluster ends with the process that started
// it.
package clustertest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"kube-queue.dev/kube-queue/test/built"
)

// Options are the options of a cluster. The defaults are those of localcluster.
type Options struct {
	// OnlyAPI starts only the API server and etcd.
	OnlyAPI bool
	// Kubernetes is the minor version of Kubernetes, such as "1.37". By default, localcluster takes it from the
	// environment variable KUBE_QUEUE_KUBERNETES, or else uses its own default.
	Kubernetes string
	// HoldBy is what holds new jobs: HoldByPolicy or HoldByWebhook. The default is the environment variable
	// KUBE_QUEUE_HOLD_BY, or else policies if the API server serves them.
	HoldBy string
	// FeatureGates and APIs of Kubernetes, as NAME=true or NAME=false.
	FeatureGates, APIs []string

	Nodes      int
	NodeCPU    string
	NodeMemory string
	NodeGPUs   int
	// Operators are the operators to run, such as "training-operator". Their CRDs are installed.
	Operators []string
	// CRDs are operators whose CRDs are installed, but which do not run.
	CRDs []string
	// Bare is a cluster without kube-queue, for tests that install it themselves.
	Bare bool
	// TypeCheck enables type checking of the expressions in policies.
	TypeCheck bool
	// PodRunTime is the run time of pods that do not set their own.
	PodRunTime time.Duration
	// AuditLevel is "Metadata" or "RequestResponse".
	AuditLevel string
	// AuditObjects are resources, such as "jobs.batch", whose objects are in the audit log even at
	// level Metadata.
	AuditObjects []string
	// Taken are resources, such as "/pytorchjobs", that a test denies to the programs. Refused requests for them are
	// no error.
	Taken []string
	// Log receives the progress. The default is os.Stderr.
	Log io.Writer
}

func (o Options) flags() []string {
	var flags []string
	add := func(name, value string) {
		if value != "" {
			flags = append(flags, "--"+name+"="+value)
		}
	}
	number := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	if o.OnlyAPI {
		flags = append(flags, "--only-api")
	}
	if o.TypeCheck {
		flags = append(flags, "--type-check")
	}
	add("kubernetes", o.Kubernetes)
	add("feature-gates", strings.Join(o.FeatureGates, ","))
	add("runtime-config", strings.Join(o.APIs, ","))
	add("nodes", number(o.Nodes))
	add("node-cpu", o.NodeCPU)
	add("node-memory", o.NodeMemory)
	add("node-gpus", number(o.NodeGPUs))
	add("operators", strings.Join(o.Operators, ","))
	if o.PodRunTime != 0 {
		add("pod-run-time", o.PodRunTime.String())
	}
	add("audit-level", o.AuditLevel)
	add("audit-objects", strings.Join(o.AuditObjects, ","))
	return flags
}

// stopGrace is how long a cluster may take to stop.
const stopGrace = time.Minute

// Start builds the programs that are missing, which takes minutes the first time, and starts a
// cluster. ctx limits only the start. Stop stops the cluster.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	log := options.Log
	if log == nil {
		log = os.Stderr
	}
	root, err := built.Root(ctx)
	if err != nil {
		return nil, err
	}
	program, err := localclusterPath(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "kube-queue-test-")
	if err != nil {
		return nil, err
	}
	run, err := startProcess(program, dir, options.flags(), log)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	ready, err := run.ready(ctx)
	if err != nil {
		err = errors.Join(err, run.stop())
		if logs, _ := os.ReadDir(filepath.Join(dir, "data")); len(logs) == 0 {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		return nil, fmt.Errorf("%w\nits logs are in %s", err, dir)
	}
	cluster, err := open(ready, root)
	if err != nil {
		return nil, errors.Join(err, run.stop(), os.RemoveAll(dir))
	}
	cluster.wantedHold = options.HoldBy
	cluster.stop = func(keep bool) error {
		var err error
		if cluster.stopWebhooks != nil {
			err = cluster.stopWebhooks()
		}
		err = errors.Join(err, run.stop())
		if cluster.stopped != nil {
			err = errors.Join(err, cluster.stopped())
		}
		if keep {
			return err
		}
		return errors.Join(err, os.RemoveAll(dir))
	}
	return cluster, nil
}

// localcluster runs a command of localcluster and returns its output.
func localcluster(ctx context.Context, args ...string) ([]byte, error) {
	program, err := localclusterPath(ctx)
	if err != nil {
		return nil, err
	}
	return output(exec.CommandContext(ctx, program, args...))
}

func localclusterPath(ctx context.Context) (string, error) {
	folder, err := built.Programs(ctx, ".", "./test/localcluster/cmd/localcluster")
	return filepath.Join(folder, "localcluster"), err
}

// process is a running "localcluster run".
type process struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	first  chan string
	exited chan struct{}
	err    error
}

func startProcess(program, dir string, flags []string, log io.Writer) (*process, error) {
	data := filepath.Join(dir, "data")
	p := &process{
		cmd:    exec.Command(program, append([]string{"run", "--data", data}, flags...)...),
		first:  make(chan string, 1),
		exited: make(chan struct{}),
	}
	p.cmd.Stderr = log
	p.cmd.WaitDelay = stopGrace
	// A separate process group, so that Ctrl-C ends only the caller, which then stops the cluster.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.stdin = stdin
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		reader := bufio.NewReader(stdout)
		if line, err := reader.ReadString('\n'); err == nil {
			p.first <- line
		}
		_, _ = io.Copy(io.Discard, reader)
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// ready waits until the cluster can be used.
func (p *process) ready(ctx context.Context) (Ready, error) {
	var ready Ready
	select {
	case line := <-p.first:
		if err := json.Unmarshal([]byte(line), &ready); err != nil {
			return ready, fmt.Errorf("localcluster printed %q: %w", line, err)
		}
		return ready, nil
	case <-p.exited:
		return ready, fmt.Errorf("the cluster did not start (%v); see the output of localcluster for the cause", p.err)
	case <-ctx.Done():
		return ready, fmt.Errorf("the cluster is not ready yet: %w", context.Cause(ctx))
	}
}

// stop stops the cluster and waits until all its processes have exited. It returns an error if the
// cluster had crashed before.
func (p *process) stop() error {
	_ = p.stdin.Close()
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
		_ = p.cmd.Process.Kill()
		<-p.exited
		return fmt.Errorf("the cluster did not stop within %v", stopGrace)
	}
	if p.err != nil {
		return fmt.Errorf("localcluster: %w", p.err)
	}
	return nil
}
