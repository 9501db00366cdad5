package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/test/audit"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/freeport"
)

// environment is the cluster of the demos. All demos share one folder, so that a demo
// replaces the cluster of an earlier one.
type environment struct {
	// root is the repository, bin the folder of the built programs, and data the folder of the cluster.
	root, bin, data string
	cluster         *clustertest.Cluster
	// metrics are the addresses of the metrics of the started programs.
	metrics map[string]string
}

func newEnvironment(root string) *environment {
	return &environment{root: root, bin: filepath.Join(root, "bin"), data: filepath.Join(root, ".cluster", "demo"), metrics: map[string]string{}}
}

// localcluster returns a localcluster command. make has built the program.
func (e *environment) localcluster(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(e.bin, "localcluster"), args...)
	cmd.Dir = e.root
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	return cmd
}

// up builds missing programs, shows the progress, starts a new cluster with two nodes of 8 GPUs, and installs
// kube-queue. It replaces the cluster of an earlier demo. An interrupted build keeps the programs that are complete.
func (e *environment) up(ctx context.Context) error {
	if e.localcluster(ctx, "status", "--data", e.data).Run() == nil {
		fmt.Println("stopping the cluster of the last demo, and everything in it")
	}
	cmd := e.localcluster(ctx, "up", "--fresh", "--data", e.data, "--nodes=2", "--node-gpus=8")
	cmd.Stdout, cmd.Stderr = nil, os.Stdout
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("starting the cluster: %w", err)
	}
	if err := e.open(ctx); err != nil {
		return err
	}
	return e.install(ctx)
}

// open connects to the running cluster.
func (e *environment) open(ctx context.Context) error {
	out, err := e.localcluster(ctx, "status", "--data", e.data, "-o", "json").Output()
	if err != nil {
		return fmt.Errorf("reading the status of the cluster: %w", err)
	}
	var status struct{ Ready clustertest.Ready }
	if err := json.Unmarshal(out, &status); err != nil {
		return fmt.Errorf("reading the status of the cluster: %w", err)
	}
	e.cluster, err = clustertest.Open(ctx, status.Ready)
	return err
}

func (e *environment) down(ctx context.Context) error {
	cmd := e.localcluster(ctx, "down", "--data", e.data)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("stopping the cluster: %w", err)
	}
	return nil
}

// kubectl is the link to kubectl for the reader.
func (e *environment) kubectl() string { return filepath.Join(e.bin, "kubectl") }

// shown returns a path as the reader would write it in the repository.
func (e *environment) shown(path string) string {
	if relative, err := filepath.Rel(e.root, path); err == nil && filepath.IsLocal(relative) {
		return relative
	}
	return path
}

// kubectlIn runs kubectl in the repository, and returns its output.
func (e *environment) kubectlIn(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, e.cluster.KubectlPath, args...)
	cmd.Dir = e.root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+e.cluster.Kubeconfig, "KUBECACHEDIR="+filepath.Join(e.data, "kubectl-cache"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return string(out), nil
}

// install installs kube-queue as a user would, and links kubectl into bin.
func (e *environment) install(ctx context.Context) error {
	say("Installing kube-queue: CRDs, admission policies, RBAC and the two programs")
	link := e.kubectl()
	if err := os.Remove(link); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := os.Symlink(e.cluster.KubectlPath, link); err != nil {
		return err
	}
	if err := e.cluster.Install(ctx); err != nil {
		return err
	}
	_, reviews, err := e.cluster.RouteReviews(ctx)
	if err != nil {
		return err
	}
	if err := e.start(ctx, "kube-queue-controller", reviews...); err != nil {
		return err
	}
	return e.start(ctx, "job-extensions", "--enabled-extensions=", "--annotation-extensions=job")
}

// start runs a program of kube-queue with its ServiceAccount.
func (e *environment) start(ctx context.Context, name string, flags ...string) error {
	_, kubeconfig, err := e.cluster.ServiceAccountConfig(ctx, name)
	if err != nil {
		return err
	}
	health, err := freeport.Address()
	metrics, metricsErr := freeport.Address()
	if err := errors.Join(err, metricsErr); err != nil {
		return err
	}
	e.metrics[name] = metrics
	args := append([]string{"program", "start", "--data", e.data, "--name", name,
		"--ready-url", "http://" + health + "/readyz", "--",
		filepath.Join(e.bin, name), "--kubeconfig", kubeconfig, "--health-bind-address", health,
		"--metrics-bind-address", metrics, "--metrics-secure=false", "--leader-elect=false"}, flags...)
	cmd := e.localcluster(ctx, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("starting %s: %w\n%s", name, err, out)
	}
	fmt.Println("started", name)
	return nil
}

// show prints a command of kubectl, runs it, and prints its output.
func (e *environment) show(ctx context.Context, args ...string) error {
	words := shellWords(args)
	fmt.Printf("$ kubectl %s\n", strings.ReplaceAll(words, " -p ", " \\\n    -p "))
	out, err := e.kubectlIn(ctx, args...)
	if err != nil {
		return fmt.Errorf("kubectl %s: %w", words, err)
	}
	fmt.Print(indent(out))
	return nil
}

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("  " + line)
	}
	return b.String()
}

// audit runs the independent checker on the complete audit log.
func (e *environment) audit(ctx context.Context) error {
	if err := e.cluster.CompleteAuditLog(ctx); err != nil {
		return err
	}
	log, err := audit.ReadFile(e.cluster.AuditLog)
	if err != nil {
		return err
	}
	report, err := log.Check(audit.Options{})
	if err != nil {
		return err
	}
	return report.Err()
}

// explain prints the state of the cluster after a failure.
func (e *environment) explain(ctx context.Context) {
	fmt.Println("\n-- Status of the cluster:")
	cmd := e.localcluster(ctx, "status", "--data", e.data)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("Logs: %s. To stop the cluster: make demo-down\n", filepath.Join(e.data, "logs"))
}
