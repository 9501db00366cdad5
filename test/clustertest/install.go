package clustertest

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

// installTimeout limits each wait of Install.
const installTimeout = 2 * time.Minute

// Install applies deploy/ like a user, and returns when it is in effect. A policy takes effect only
// some seconds after its creation. Until then jobs are not held.
//
// The CRDs of all jobs to be held must be installed before.
func (c *Cluster) Install(ctx context.Context) error {
	if err := c.InstallWithoutPolicies(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, installTimeout, fmt.Errorf("not installed within %v", installTimeout))
	defer cancel()
	if _, err := c.Kubectl(ctx, "apply", "--server-side", "-f", filepath.Join(c.Repository, "deploy", "policies")); err != nil {
		return err
	}
	return c.WaitForPolicies(ctx)
}

// InstallWithoutPolicies omits the admission policies, to measure their cost. Without them no job
// is held, and units are protected only by RBAC.
func (c *Cluster) InstallWithoutPolicies(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, installTimeout, fmt.Errorf("not installed within %v", installTimeout))
	defer cancel()
	deploy := filepath.Join(c.Repository, "deploy")
	crds := filepath.Join(deploy, "crds")
	if _, err := c.Kubectl(ctx, "apply", "--server-side",
		"-f", crds,
		"-f", filepath.Join(deploy, "namespace.yaml"),
		"-f", filepath.Join(deploy, "rbac"),
	); err != nil {
		return err
	}
	_, err := c.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout="+installTimeout.String(), "-f", crds)
	return err
}
