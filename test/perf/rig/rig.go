// Package rig runs the environment of a measurement: a local control plane with kube-queue
// installed, and the programs of kube-queue, built and started as in production.
//
// Terms. A Program is a program of kube-queue, which can be stopped, killed and restarted. Use
// is the processor time and the memory of each process: the programs, the parts of the
// cluster, and the tool itself, which shares the machine.
//
// The audit log of the cluster tells which program has written what, and when.
//
// Invariants: the programs run without the race detector, with their ServiceAccounts and with
// leader election. No program outlives the rig, and the rig stops with its cluster.
package rig

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"sync"

	"kube-queue.dev/kube-queue/test/built"
	"kube-queue.dev/kube-queue/test/clustertest"
)

// The programs.
const (
	Controller = "kube-queue-controller"
	Extensions = "job-extensions"
	// Plugin is the kubectl plugin.
	Plugin = "kubectl-kube_queue"
	// Tool is the name under which Use reports this process.
	Tool = "perf"
)

// Options are the options of a rig and of its cluster.
type Options struct {
	clustertest.Options
	// WithoutPolicies omits kube-queue's admission policies.
	WithoutPolicies bool
	// WithoutPrograms omits the build of the programs.
	WithoutPrograms bool
	// Profiling enables profiles of the programs.
	Profiling bool
}

// Rig is a running cluster with kube-queue installed.
type Rig struct {
	Cluster *clustertest.Cluster
	// Version is the version of the programs.
	Version string

	// programs is the folder of the programs.
	programs  string
	profiling bool

	mu      sync.Mutex
	running map[string]*Program
	// ended is the use of programs that have exited.
	ended Use
}

// Start builds the programs and starts a cluster. ctx limits only the start.
func Start(ctx context.Context, options Options) (*Rig, error) {
	r := &Rig{profiling: options.Profiling, running: map[string]*Program{}, ended: Use{}}
	if err := r.start(ctx, options); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *Rig) start(ctx context.Context, options Options) error {
	r.Version = version(ctx)
	if !options.WithoutPrograms {
		const cmd = "kube-queue.dev/kube-queue/cmd/"
		var err error
		if r.programs, err = built.Programs(ctx, ".", cmd+Controller, cmd+Extensions, cmd+Plugin); err != nil {
			return err
		}
	}
	options.AuditLevel = "Metadata"
	cluster, err := clustertest.Start(ctx, options.Options)
	r.Cluster = cluster
	if err != nil {
		return err
	}
	if options.WithoutPolicies {
		return cluster.InstallWithoutPolicies(ctx)
	}
	return cluster.Install(ctx)
}

func version(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--tags", "--always", "--dirty").Output()
	if err != nil {
		// Like the Makefile outside of a git repository.
		return "devel"
	}
	return strings.TrimSpace(string(out))
}

// Close stops all programs and the cluster.
func (r *Rig) Close() error { return r.close((*clustertest.Cluster).Stop) }

// CloseAndKeep is like Close, but keeps the logs in Cluster.Data.
func (r *Rig) CloseAndKeep() error { return r.close((*clustertest.Cluster).StopAndKeep) }

func (r *Rig) close(stop func(*clustertest.Cluster) error) error {
	r.mu.Lock()
	var programs []*Program
	for _, p := range r.running {
		programs = append(programs, p)
	}
	r.mu.Unlock()
	var errs []error
	for _, p := range programs {
		errs = append(errs, p.Stop())
	}
	if r.Cluster != nil {
		errs = append(errs, stop(r.Cluster))
	}
	return errors.Join(errs...)
}
