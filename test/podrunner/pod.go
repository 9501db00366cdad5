package podrunner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// probeEvery is the interval of probes. It replaces the interval in the pod to keep tests fast.
	probeEvery = 100 * time.Millisecond
	// defaultGrace is the default of Kubernetes.
	defaultGrace = 30 * time.Second
)

// pod is a pod that runs as a local process.
type pod struct {
	runner *Runner
	object *corev1.Pod
	// ip is the address of the pod in the cluster. address is that of its process on this machine.
	ip, address string
	folder      string
	// stop is closed to end the pod. ending reports that it was closed.
	stop   chan struct{}
	ending bool
	// process is the running process, if any; the mutex of the runner guards it.
	process *os.Process
}

// run runs the program and restarts it until stop is closed.
func (p *pod) run(ctx context.Context) error {
	if spec := p.object.Spec; len(spec.Containers) != 1 || len(spec.InitContainers) != 0 || len(spec.Containers[0].Command) != 0 {
		return errors.New("only pods with one container and no command are supported")
	}
	if err := os.MkdirAll(p.folder, 0o755); err != nil {
		return err
	}
	kubeconfig := filepath.Join(p.folder, "kubeconfig")
	err := retry(ctx, func(ctx context.Context) error {
		return p.runner.options.Cluster.WriteKubeconfig(ctx, p.object.Spec.ServiceAccountName, kubeconfig)
	})
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(p.folder, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	pause := wait.Backoff{Duration: time.Second, Factor: 2, Steps: 10, Cap: 20 * time.Second}
	for restarts := int32(0); ; restarts++ {
		command, err := p.command(ctx, kubeconfig)
		if err != nil {
			return err
		}
		command.Stdout, command.Stderr = log, log
		state, err := p.runOnce(ctx, command, restarts)
		if err != nil || state == nil {
			return errors.Join(err, p.gone(ctx))
		}
		if p.object.Spec.RestartPolicy == corev1.RestartPolicyNever {
			return p.report(ctx, status{restarts: restarts, ended: state})
		}
		if err := p.report(ctx, status{restarts: restarts, ended: state, backingOff: true}); err != nil {
			return err
		}
		select {
		case <-time.After(pause.Step()):
		case <-p.stop:
			return p.gone(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// runOnce runs the program until it ends, and returns how it ended. The result is nil if the pod
// was stopped.
func (p *pod) runOnce(ctx context.Context, command *exec.Cmd, restarts int32) (*corev1.ContainerStateTerminated, error) {
	started := metav1.Now()
	if err := command.Start(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	p.runs(command.Process)
	go func() {
		_ = command.Wait()
		p.runs(nil)
		close(ended)
	}()
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	reported := status{restarts: restarts, started: started}
	if err := p.report(ctx, reported); err != nil {
		return nil, errors.Join(err, p.kill(command, ended))
	}
	for {
		select {
		case <-ended:
			return &corev1.ContainerStateTerminated{ExitCode: int32(command.ProcessState.ExitCode()), Reason: "Error",
				StartedAt: started, FinishedAt: metav1.Now()}, nil
		case <-p.stop:
			return nil, p.kill(command, ended)
		case <-ctx.Done():
			return nil, p.kill(command, ended)
		case <-tick.C:
			now := reported
			container := p.object.Spec.Containers[0]
			now.ready = p.answers(ctx, container.ReadinessProbe) && p.answers(ctx, container.LivenessProbe)
			if now == reported {
				continue
			}
			if err := p.report(ctx, now); err != nil {
				return nil, errors.Join(err, p.kill(command, ended))
			}
			reported = now
		}
	}
}

func (p *pod) runs(process *os.Process) {
	p.runner.mu.Lock()
	defer p.runner.mu.Unlock()
	p.process = process
}

var prober = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// answers reports whether the probe passes. A missing probe passes.
func (p *pod) answers(ctx context.Context, probe *corev1.Probe) bool {
	if probe == nil || probe.HTTPGet == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	url := fmt.Sprintf("http://%s:%d%s", p.address, p.port(probe.HTTPGet.Port.StrVal), probe.HTTPGet.Path)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := prober.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// kill terminates the program, and kills it at the end of the grace period.
func (p *pod) kill(command *exec.Cmd, ended <-chan struct{}) error {
	if err := command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	grace := defaultGrace
	if seconds := p.object.Spec.TerminationGracePeriodSeconds; seconds != nil {
		grace = time.Duration(*seconds) * time.Second
	}
	select {
	case <-ended:
		return nil
	case <-time.After(grace):
		_ = command.Process.Kill()
		<-ended
		return fmt.Errorf("the program did not end within the grace period of %v", grace)
	}
}

// gone deletes the pod with grace period 0, as a kubelet does when the containers have ended.
func (p *pod) gone(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	return retry(ctx, func(ctx context.Context) error {
		err := p.runner.client.CoreV1().Pods(p.object.Namespace).Delete(ctx, p.object.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &p.object.UID}})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		return err
	})
}
