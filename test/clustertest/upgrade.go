package clustertest

import (
	"context"
	"fmt"
	"strings"
)

// Upgrade replaces the control plane with a newer version, such as "1.36", on the same data. Kubeconfigs stay valid.
// The API server is down for some seconds. kubectl keeps the earlier version, because other goroutines can use it
// during the upgrade.
func (c *Cluster) Upgrade(ctx context.Context, version string) error {
	if _, err := localcluster(ctx, "upgrade", "--data="+c.Data, "--kubernetes="+version); err != nil {
		return fmt.Errorf("upgrading the cluster to Kubernetes %s: %w", version, err)
	}
	state, err := c.state()
	if err != nil {
		return fmt.Errorf("upgrading the cluster to Kubernetes %s: %w", version, err)
	}
	c.Kubernetes = state.Ready.Kubernetes
	return nil
}

// StartSecondAPIServer starts a second API server on the same data, as in a rolling upgrade of API servers. It
// returns an administrator's kubeconfig for it. Other credentials are valid for both API servers.
func (c *Cluster) StartSecondAPIServer(ctx context.Context, version string) (kubeconfig string, err error) {
	out, err := localcluster(ctx, "apiserver", "start", "--data="+c.Data, "--kubernetes="+version)
	if err != nil {
		return "", fmt.Errorf("starting a second API server of Kubernetes %s: %w", version, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// StopSecondAPIServer stops the second API server.
func (c *Cluster) StopSecondAPIServer(ctx context.Context) error {
	_, err := localcluster(ctx, "apiserver", "stop", "--data="+c.Data)
	return err
}
