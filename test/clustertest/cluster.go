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
)

// Ready is the output of localcluster for a ready cluster.
type Ready struct {
	// Kubeconfig is the administrator's.
	Kubeconfig string `json:"kubeconfig"`
	Data       string `json:"data"`
	AuditLog   string `json:"auditLog"`
	// KubectlPath is the program kubectl of the cluster's version.
	KubectlPath string `json:"kubectl"`
	Server      string `json:"server"`
	Logs        string `json:"logs"`
}

// Cluster is a running cluster.
type Cluster struct {
	Ready
	// Repository is the folder of the main module.
	Repository string

	admin *rest.Config
	// stop is nil for a cluster that somebody else runs.
	stop func(keep bool) error
	// stopped is called, if it is set, when nothing of the cluster runs any more.
	stopped func() error
}

// Open uses a cluster that runs already, as one started by "localcluster up".
func Open(ctx context.Context, ready Ready) (*Cluster, error) {
	root, err := repository(ctx)
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
	// A test waits for the server, never for a client's rate limit.
	admin.QPS = -1
	return &Cluster{Ready: ready, Repository: root, admin: admin}, nil
}

// Stop ends a cluster that Start has started.
func (c *Cluster) Stop() error { return c.end(false) }

// StopAndKeep ends it and leaves its logs in Data.
func (c *Cluster) StopAndKeep() error { return c.end(true) }

func (c *Cluster) end(keep bool) error {
	if c.stop == nil {
		return nil
	}
	return c.stop(keep)
}

// Config is the administrator's.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.admin) }

// ConfigAs acts as another user with nothing but that user's rights.
func (c *Cluster) ConfigAs(user string, groups ...string) *rest.Config {
	config := c.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	return config
}

// Kubectl runs kubectl as the administrator and returns what it prints.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	return c.KubectlWith(ctx, "", args...)
}

// KubectlWith gives kubectl a standard input, for "-f -".
func (c *Cluster) KubectlWith(ctx context.Context, stdin string, args ...string) (string, error) {
	// With a cache of its own it never remembers another cluster's resources.
	args = append([]string{"--kubeconfig=" + c.Kubeconfig, "--cache-dir=" + filepath.Join(c.Data, "kubectl-cache")}, args...)
	cmd := exec.CommandContext(ctx, c.KubectlPath, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args[2:], " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}
