package cluster

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"kube-queue.dev/kube-queue/test/localcluster/internal/process"
)

// ErrNotRunning means that a data folder has no running supervisor.
var ErrNotRunning = errors.New("no cluster is running here")

// stopDeadline is the timeout of a stop, in which each rank can use its grace period. After it, the supervisor is
// killed together with its parts.
const stopDeadline = 40 * time.Second

// ask sends a request to the supervisor of the folder.
func (f Folder) ask(ctx context.Context, path string, in, out any) error {
	socket := f.socket()
	if status, err := f.savedState(); err == nil {
		// The supervisor may have another directory for temporary files.
		socket = status.Socket
	}
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
		DisableKeepAlives: true,
	}}
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://supervisor"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("data folder %s: %w", f, ErrNotRunning)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		failure := failureAnswer{Error: response.Status}
		_ = json.NewDecoder(response.Body).Decode(&failure)
		return errors.New(failure.Error)
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(out)
}

// Status returns the status of the cluster, even after its end.
func (f Folder) Status() (*Status, error) {
	status, err := f.savedState()
	if err != nil || status.Supervisor.Alive() {
		return status, err
	}
	status = afterwards(status)
	if end := process.Tail(f.Log("supervisor"), crashLines); status.Failure == supervisorGone && end != "" {
		status.Failure += "; the end of its log:\n" + end
	}
	return status, nil
}

const supervisorGone = "the supervisor is gone without having stopped the cluster"

// afterwards corrects the last status that a supervisor wrote, for a supervisor that has ended.
func afterwards(status *Status) *Status {
	if status.Phase != PhaseStopped && status.Phase != PhaseFailed {
		status.Phase = PhaseFailed
		status.Failure = supervisorGone
	}
	for i := range status.Parts {
		p := &status.Parts[i]
		if p.State == StateCrashed {
			p.LogEnd = process.Tail(p.Log, crashLines)
		} else if !p.Alive() {
			p.State = StateStopped
		}
	}
	return status
}

// Stop stops the cluster in the folder and returns when all of its processes have ended. It is
// no error if there is no cluster or if its supervisor was killed.
func (f Folder) Stop(ctx context.Context) (stopped bool, err error) {
	limited, cancel := context.WithTimeoutCause(ctx, stopDeadline, fmt.Errorf("not stopped after %v", stopDeadline))
	defer cancel()
	asked := false
	err = waitFor(limited, "stop", func(ctx context.Context) error {
		if !f.InUse() {
			return nil
		}
		stopped = true
		if !asked {
			// The socket may not exist yet.
			if err := f.ask(ctx, "/stop", nil, nil); err != nil {
				return err
			}
			asked = true
		}
		return errors.New("the supervisor still runs")
	})
	if err != nil {
		if ctx.Err() != nil {
			return stopped, err
		}
		if err := f.killSupervisor(err); err != nil {
			return stopped, err
		}
	}
	return f.clearAway(stopped)
}

// clearAway ends and removes the remains of a cluster that did not stop. It holds the lock, so that
// it does not affect a new cluster.
func (f Folder) clearAway(before bool) (stopped bool, err error) {
	if _, err := os.Stat(f.Path(lockFile)); errors.Is(err, os.ErrNotExist) {
		return before, nil
	}
	lock, err := f.TryLock()
	if errors.Is(err, ErrInUse) {
		return before, nil
	}
	if err != nil {
		return before, err
	}
	defer lock.Close()
	stopped = before || len(f.strays()) > 0
	if err := f.killStrays(); err != nil {
		return stopped, err
	}
	return stopped, f.removeSockets()
}

// killSupervisor kills a supervisor that does not stop on request.
func (f Folder) killSupervisor(why error) error {
	status, err := f.savedState()
	if err != nil {
		return errors.Join(why, err)
	}
	if err := status.Supervisor.Kill(strayDeadline); err != nil {
		return errors.Join(why, fmt.Errorf("data folder %s: supervisor: %w", f, err))
	}
	return nil
}

// StartProgram starts a program along with the cluster.
func (f Folder) StartProgram(ctx context.Context, program Program) error {
	return f.ask(ctx, "/programs", program, nil)
}

// StopProgram stops a program with SIGTERM.
func (f Folder) StopProgram(ctx context.Context, name string) error {
	return f.ask(ctx, "/programs/"+name+"/stop", nil, nil)
}

// Route adds and replaces routes of the cluster.
func (f Folder) Route(ctx context.Context, routes Routes) error {
	return f.ask(ctx, "/routes", routes, nil)
}

// Upgrade replaces the control plane with another version, on the same data.
func (f Folder) Upgrade(ctx context.Context, to Version) error {
	return f.ask(ctx, "/upgrade", to, nil)
}

// StartSecond starts a second API server, and returns the path of the administrator's kubeconfig for it.
func (f Folder) StartSecond(ctx context.Context, version Version) (kubeconfig string, err error) {
	err = f.ask(ctx, "/apiserver", version, &kubeconfig)
	return kubeconfig, err
}

// StopSecond stops the second API server.
func (f Folder) StopSecond(ctx context.Context) error {
	return f.ask(ctx, "/apiserver/stop", nil, nil)
}

// WaitReady waits until the cluster in the folder is ready and reports its progress. It returns
// an error if the cluster fails.
func (f Folder) WaitReady(ctx context.Context, say func(format string, args ...any)) (*Ready, error) {
	var status *Status
	reported := ""
	err := waitFor(ctx, "wait for the cluster", func(context.Context) error {
		var err error
		status, err = f.Status()
		if errors.Is(err, errNoCluster) && !f.InUse() {
			status = &Status{Phase: PhaseFailed, Failure: "the supervisor ended at once:\n" + process.Tail(f.Log("supervisor"), crashLines)}
			return nil
		}
		if err != nil {
			return err
		}
		if status.Detail != "" && status.Detail != reported {
			reported = status.Detail
			say("%s", reported)
		}
		if status.Phase == PhaseStarting || status.Phase == PhaseUpgrading || status.Phase == PhaseStopping {
			return fmt.Errorf("it is %s", status.Phase)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if status.Phase != PhaseReady || status.Ready == nil {
		return nil, errors.New(cmp.Or(status.Failure, "the cluster was stopped"))
	}
	return status.Ready, nil
}
