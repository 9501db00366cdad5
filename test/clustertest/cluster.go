package clustertest

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"kube-queue.dev/kube-queue/test/built"
)

// Ready is the output of localcluster for a ready cluster.
type Ready struct {
	// Kubeconfig is the kubeconfig of the administrator.
	Kubeconfig string `json:"kubeconfig"`
	Data       string `json:"data"`
	AuditLog   string `json:"auditLog"`
	// KubectlPath is a kubectl of the cluster's version.
	KubectlPath string `json:"kubectl"`
	// Kubernetes is the minor version, such as "1.36".
	Kubernetes string `json:"kubernetes"`
	Server     string `json:"server"`
	Logs       string `json:"logs"`
}

// Cluster is a running cluster.
type Cluster struct {
	Ready
	// Repository is the folder of the main module.
	Repository string

	// HoldsBy is what holds new jobs, once kube-queue is installed.
	HoldsBy string

	admin *rest.Config
	// wantedHold is Options.HoldBy.
	wantedHold string
	// stopWebhooks stops the webhooks of this process. It is nil if there are none.
	stopWebhooks func() error
	// stop is nil for a cluster that was opened, not started.
	stop func(keep bool) error
	// stopped is called, if set, after the cluster has stopped.
	stopped func() error
}

// Open uses a running cluster, such as one started by "localcluster up".
func Open(ctx context.Context, ready Ready) (*Cluster, error) {
	root, err := built.Root(ctx)
	if err != nil {
		return nil, err
	}
	return open(ready, root)
}

func open(ready Ready, root string) (*Cluster, error) {
	admin, err := clientcmd.BuildConfigFromFlags("", ready.Kubeconfig)
	if err != nil {
		return nil, err
	}
	// Disable the rate limit of the client: tests should not wait for it.
	admin.QPS = -1
	return &Cluster{Ready: ready, Repository: root, admin: admin}, nil
}

// Stop stops a cluster that was started by Start.
func (c *Cluster) Stop() error { return c.end(false) }

// StopAndKeep stops the cluster and keeps its logs in Data.
func (c *Cluster) StopAndKeep() error { return c.end(true) }

func (c *Cluster) end(keep bool) error {
	if c.stop == nil {
		return nil
	}
	return c.stop(keep)
}

// Config returns the config of the administrator.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.admin) }

// ConfigAs returns a config that impersonates a user, with only that user's rights.
func (c *Cluster) ConfigAs(user string, groups ...string) *rest.Config {
	config := c.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	return config
}

// Kubectl runs kubectl as the administrator and returns its output.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	return c.KubectlWith(ctx, "", args...)
}

// KubectlWith is like Kubectl, with a standard input for "-f -".
func (c *Cluster) KubectlWith(ctx context.Context, stdin string, args ...string) (string, error) {
	// A separate cache, so that kubectl does not use the cached resources of another cluster.
	args = append([]string{"--kubeconfig=" + c.Kubeconfig, "--cache-dir=" + filepath.Join(c.Data, "kubectl-cache")}, args...)
	cmd := exec.CommandContext(ctx, c.KubectlPath, args...)
	if strings.HasPrefix(strings.TrimSpace(stdin), "{") {
		stdin = "---\n" + stdin // kubectl 1.30 mistakes YAML in flow style for JSON
	}
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args[2:], " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}
