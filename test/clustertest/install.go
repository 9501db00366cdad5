package clustertest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// installTimeout limits each wait of Install.
const installTimeout = 2 * time.Minute

// Install applies deploy/ as a user would, and returns when it is in effect. A policy takes effect only some seconds
// after its creation. Until then, jobs are not held.
//
// Install the CRDs of all kinds to be held first.
func (c *Cluster) Install(ctx context.Context) error {
	if err := c.InstallWithoutPolicies(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, installTimeout, fmt.Errorf("not installed within %v", installTimeout))
	defer cancel()
	policies, err := manifests(filepath.Join(c.variant(), "policies"))
	if err != nil {
		return err
	}
	if _, err := c.KubectlWith(ctx, policies, "apply", "--server-side", "-f", "-"); err != nil {
		return err
	}
	if c.HoldsBy == HoldByWebhook {
		if c.stopWebhooks, err = c.ServeWebhooks(ctx); err != nil {
			return err
		}
	}
	return c.WaitForPolicies(ctx)
}

// variant returns the folder of the manifests for policies or webhooks, whichever hold jobs.
func (c *Cluster) variant() string {
	if c.HoldsBy == HoldByWebhook {
		return filepath.Join(c.Repository, "deploy", "webhook")
	}
	return filepath.Join(c.Repository, "deploy")
}

// manifests returns all manifests of a folder as one stream.
func manifests(folder string) (string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		all.Write(text)
		all.WriteString("\n---\n")
	}
	return all.String(), nil
}

// InstallWithoutPolicies omits the admission policies, to measure their cost. Without them, no job is held, and only
// RBAC protects units.
func (c *Cluster) InstallWithoutPolicies(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, installTimeout, fmt.Errorf("not installed within %v", installTimeout))
	defer cancel()
	var err error
	if c.HoldsBy, err = c.holdBy(ctx); err != nil {
		return err
	}
	deploy := filepath.Join(c.Repository, "deploy")
	crds := filepath.Join(deploy, "crds")
	if _, err := c.Kubectl(ctx, "apply", "--server-side",
		"-f", crds,
		"-f", filepath.Join(deploy, "namespace.yaml"),
		"-f", filepath.Join(c.variant(), "rbac"),
	); err != nil {
		return err
	}
	_, err = c.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout="+installTimeout.String(), "-f", crds)
	return err
}
