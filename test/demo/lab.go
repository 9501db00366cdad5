package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	corev1 "k8s.io/api/core/v1"

	"kube-queue.dev/kube-queue/test/audit"
	"kube-queue.dev/kube-queue/test/testcluster"
)

// podRunTime is how long the simulated pods run, whatever their commands say: the
// manifests are those of real users, and sleep longer than anybody wants to watch.
const podRunTime = 8 * time.Second

// lab is the demo's cluster.
type lab struct {
	root, data string
	cluster    *testcluster.Cluster
}

func newLab(root string) *lab {
	return &lab{root: root, data: filepath.Join(root, ".cluster", "demo")}
}

// repository is the folder of the main module.
func repository(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "kube-queue.dev/kube-queue").Output()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w; run this within a clone of it", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// localcluster runs the command of this name, which make has built.
func (l *lab) localcluster(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(l.root, "bin", "localcluster"), args...)
	cmd.Dir = l.root
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	return cmd
}

// up starts a new cluster in place of one that an earlier demo left.
func (l *lab) up(ctx context.Context) error {
	cmd := l.localcluster(ctx, "up", "--fresh", "--data", l.data,
		"--operators", "training-operator", "--pod-run-time", podRunTime.String())
	var errs strings.Builder
	cmd.Stdout, cmd.Stderr = nil, os.Stdout
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("starting the cluster: %w%s", err, errs.String())
	}
	out, err := l.localcluster(ctx, "status", "--data", l.data, "-o", "json").Output()
	if err != nil {
		return fmt.Errorf("asking how the cluster is: %w", err)
	}
	var status struct{ Ready testcluster.Ready }
	if err := json.Unmarshal(out, &status); err != nil {
		return fmt.Errorf("asking how the cluster is: %w", err)
	}
	l.cluster, err = testcluster.Open(ctx, status.Ready)
	return err
}

func (l *lab) down(ctx context.Context) error {
	cmd := l.localcluster(ctx, "down", "--data", l.data)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("stopping the cluster: %w", err)
	}
	return nil
}

// install does what a user of a cluster does, and links kubectl into bin.
func (l *lab) install(ctx context.Context) error {
	link := filepath.Join(l.root, "bin", "kubectl")
	if err := os.Remove(link); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := os.Symlink(l.cluster.KubectlPath, link); err != nil {
		return err
	}
	if err := l.cluster.Install(ctx); err != nil {
		return err
	}
	for _, name := range []string{"kube-queue-controller", "job-extensions"} {
		if err := l.start(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// start runs one of kube-queue's programs as its ServiceAccount.
func (l *lab) start(ctx context.Context, name string) error {
	_, kubeconfig, err := l.cluster.ServiceAccountConfig(ctx, name)
	if err != nil {
		return err
	}
	health, err := freeAddress()
	if err != nil {
		return err
	}
	cmd := l.localcluster(ctx, "program", "start", "--data", l.data, "--name", name,
		"--ready-url", "http://"+health+"/readyz", "--",
		filepath.Join(l.root, "bin", name), "--kubeconfig", kubeconfig, "--health-bind-address", health, "--leader-elect=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("starting %s: %w\n%s", name, err, out)
	}
	fmt.Printf("%s runs\n", name)
	return nil
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func (l *lab) apply(ctx context.Context, files ...string) error {
	for _, file := range files {
		path := filepath.Join("test", "acceptance", file)
		fmt.Printf("kubectl apply -f %s\n", path)
		out, err := l.cluster.Kubectl(ctx, "apply", "-f", filepath.Join(l.root, path))
		if err != nil {
			return fmt.Errorf("applying %s: %w", path, err)
		}
		fmt.Print(indent(out))
	}
	return nil
}

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("  " + line)
	}
	return b.String()
}

// audit has the independent checker read the audit log, once all of it is written.
func (l *lab) audit(ctx context.Context) error {
	if err := l.waitForLog(ctx); err != nil {
		return err
	}
	log, err := audit.ReadFile(l.cluster.AuditLog)
	if err != nil {
		return err
	}
	report, err := log.Check(audit.Options{})
	if err != nil {
		return err
	}
	if err := report.Print(os.Stdout); err != nil {
		return err
	}
	if err := report.Err(); err != nil {
		return err
	}
	return inTurn(log)
}

// inTurn tells whether job2 had no pod before job1 had ended.
func inTurn(log *audit.Log) error {
	one, err := log.Life(audit.Options{}, "TFJob", "default", "job1")
	if err != nil {
		return err
	}
	two, err := log.Life(audit.Options{}, "TFJob", "default", "job2")
	if err != nil {
		return err
	}
	if !one.Ended.Before(two.FirstPod) {
		return fmt.Errorf("job2 had a pod at %v, and job1 ended at %v", two.FirstPod, one.Ended)
	}
	return nil
}

// waitForLog writes a marker and waits until it is in the audit log: then all
// that was written before is there as well.
func (l *lab) waitForLog(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(l.cluster.Config())
	if err != nil {
		return err
	}
	marker := audit.Marker{Namespace: "default", Name: "end-of-demo"}
	_, err = client.CoreV1().ConfigMaps(marker.Namespace).Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: marker.Name}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return audit.WaitFor(ctx, l.cluster.AuditLog, marker)
}

// farewell says how to go on.
func (l *lab) farewell() {
	kubeconfig := l.cluster.Kubeconfig
	if relative, err := filepath.Rel(l.root, kubeconfig); err == nil {
		kubeconfig = relative
	}
	fmt.Printf(`
== Done: one ran, the other waited, then it ran.

The cluster is left up. To look around:
  export KUBECONFIG=%s
  bin/kubectl get tfjob,qu
  bin/kubectl get queue -A
  bin/kubectl describe tfjob job2
To run it again: make demo       To stop it: make demo-down
`, kubeconfig)
}

// explain shows what may help to see why the demo failed.
func (l *lab) explain(ctx context.Context) {
	fmt.Println("\n-- How the cluster is:")
	cmd := l.localcluster(ctx, "status", "--data", l.data)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("Its logs are in %s; make demo-down stops it.\n", filepath.Join(l.data, "logs"))
}
