// Package rig runs the environment of a measurement: a local control plane with kube-queue
// installed, and the programs of kube-queue, built and started as in production.
//
// Terms. A Program is a program of kube-queue, which can be stopped, killed and restarted. Use
// is the processor time and the memory of each process: the programs, the parts of the
// cluster, and the tool itself, which shares the machine. A Log is the audit log of the cluster,
// which tells which program has written what, and when.
//
// Invariants: the programs run without the race detector, with their ServiceAccounts and with
// leader election. No program outlives the rig, and the rig stops with its cluster.
package rig

import (
	"context"
	"errors"
	"sync"

	"k8s.io/client-go/kubernetes"

	"kube-queue.dev/kube-queue/pkg/generated/clientset/versioned"
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
}

// Rig is a running cluster with kube-queue installed.
type Rig struct {
	Cluster *clustertest.Cluster
	// Kube and Queue are clients of the administrator.
	Kube  kubernetes.Interface
	Queue versioned.Interface
	// Exited is called if a program exits by itself, because figures are only valid for a running
	// program. Set it before programs start.
	Exited func(error)

	// programs is the folder of the programs.
	programs string

	mu      sync.Mutex
	running map[string]*Program
}

// Start builds the programs and starts a cluster. ctx limits only the start.
func Start(ctx context.Context, options Options) (*Rig, error) {
	r := &Rig{Exited: func(error) {}, running: map[string]*Program{}}
	if err := r.start(ctx, options); err != nil {
		return nil, errors.Join(err, r.Close(false))
	}
	return r, nil
}

func (r *Rig) start(ctx context.Context, options Options) (err error) {
	const cmd = "kube-queue.dev/kube-queue/cmd/"
	if r.programs, err = built.Programs(ctx, ".", cmd+Controller, cmd+Extensions, cmd+Plugin); err != nil {
		return err
	}
	options.AuditLevel = "Metadata"
	if r.Cluster, err = clustertest.Start(ctx, options.Options); err != nil {
		return err
	}
	config := r.Cluster.Config()
	config.QPS, config.UserAgent, config.DisableCompression = -1, Tool, true
	if r.Kube, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if r.Queue, err = versioned.NewForConfig(config); err != nil {
		return err
	}
	if options.WithoutPolicies {
		return r.Cluster.InstallWithoutPolicies(ctx)
	}
	return r.Cluster.Install(ctx)
}

// Close stops all programs and the cluster. The logs in Cluster.Data can be kept.
func (r *Rig) Close(keep bool) error {
	var errs []error
	for _, p := range r.programsNow() {
		errs = append(errs, p.Stop())
	}
	switch {
	case r.Cluster == nil:
	case keep:
		errs = append(errs, r.Cluster.StopAndKeep())
	default:
		errs = append(errs, r.Cluster.Stop())
	}
	return errors.Join(errs...)
}

// programsNow returns the running programs.
func (r *Rig) programsNow() []*Program {
	r.mu.Lock()
	defer r.mu.Unlock()
	var programs []*Program
	for _, p := range r.running {
		programs = append(programs, p)
	}
	return programs
}
