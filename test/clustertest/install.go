package clustertest

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

// installTimeout limits each wait of Install.
const installTimeout = 2 * time.Minute

// Install applies everything in deploy/ as a user would, and returns when it is
// in effect: a policy acts only some seconds after it was created, and a test
// that is faster would see jobs run that were to be held.
//
// Operators whose jobs are to be held must have their CRDs in the cluster before.
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

// InstallWithoutPolicies leaves out the admission policies, to see what they cost.
// Without them no job is held, and anybody with the right may write a unit.
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
