package rig

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"kube-queue.dev/kube-queue/pkg/controller/reviews"
	"kube-queue.dev/kube-queue/test/clustertest"
)

// InstallReviews installs only what reviews need of the policies.
func (r *Rig) InstallReviews(ctx context.Context) error {
	_, err := r.Cluster.Kubectl(ctx, "apply", "--server-side", "-f", filepath.Join(r.Cluster.Repository, "deploy", "policies", "reviews.yaml"))
	return err
}

// AnswersReviews returns the arguments with which kube-queue-controller answers reviews. A route leads to it. The address
// that it writes into the EndpointSlice is one that no machine has.
func (r *Rig) AnswersReviews(ctx context.Context) (args []string, err error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if err := r.Cluster.Route(ctx, clustertest.Namespace+"/"+reviews.Service+":443", address); err != nil {
		return nil, err
	}
	return []string{"--webhook-bind-address=" + address, "--webhook-advertise-address=192.0.2.1:" + port}, nil
}

// Output is what a run of the kubectl plugin has printed.
type Output struct {
	Out, Err string
	// Took is the time from the start of the process to its end.
	Took time.Duration
}

// RunPlugin runs the kubectl plugin as the administrator, and returns when it has ended.
func (r *Rig) RunPlugin(ctx context.Context, args ...string) (Output, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(r.programs, Plugin), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+r.Cluster.Kubeconfig)
	cmd.Stdout, cmd.Stderr = &out, &errs
	began := time.Now()
	err := cmd.Run()
	output := Output{out.String(), errs.String(), time.Since(began)}
	if err != nil {
		return output, fmt.Errorf("%s %v: %w: %s", Plugin, args, err, output.Err)
	}
	return output, nil
}
