package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"

	"kube-queue.dev/kube-queue/test/perf/rig"
)

// watchOver calls cancel if the controller exits unexpectedly, because figures are only valid for a
// running controller.
func (u *unitsRun) watchOver(ctx context.Context, p *rig.Program, cancel context.CancelCauseFunc) {
	select {
	case <-ctx.Done():
	case <-p.Ended():
		if u.killed.Load() != p {
			cancel(fmt.Errorf("%s exited unexpectedly; see %s", p.Name, p.Log))
		}
	}
}

// Room applies a tree with quota for this many units in each leaf.
func (u *unitsRun) Room(ctx context.Context, units int) error {
	tree, err := u.scenario.TreeWithRoom(units)
	if err != nil {
		return err
	}
	fmt.Fprintf(u.progress, "making room for %d units in each of %d queues\n", units, u.scenario.LeafCount())
	return u.rig.ApplyTree(ctx, tree)
}

// Restart kills and restarts the controller.
func (u *unitsRun) Restart(ctx context.Context, meanwhile func(context.Context) error) (time.Time, error) {
	if err := u.profiled(); err != nil {
		return time.Time{}, err
	}
	fmt.Fprintln(u.progress, "killing the controller")
	u.killed.Store(u.controller)
	if err := u.controller.Kill(); err != nil {
		return time.Time{}, err
	}
	if err := meanwhile(ctx); err != nil {
		return time.Time{}, err
	}
	if err := u.rig.GiveUpLease(ctx, rig.Controller); err != nil {
		return time.Time{}, err
	}
	began := time.Now()
	started, err := u.rig.Launch(ctx, rig.Controller, policyEnv(u.scenario.Policy))
	if err != nil {
		return time.Time{}, err
	}
	u.controller = started
	u.guard(started)
	if u.profiles != "" {
		u.profileLater(ctx, 0, profileAtMost/2, "starting.cpu")
	}
	return began, nil
}

// Use returns the use of all processes.
func (u *unitsRun) Use() (rig.Use, error) { return u.rig.Use() }

const (
	// profileAtMost is the maximum duration of a profile of the controller.
	profileAtMost = 20 * time.Second
	// The profile of a stream starts after 1/middle of it.
	middle = 3
)

// Moment starts the profiles of a backlog.
func (u *unitsRun) Moment(ctx context.Context, name string) error {
	switch {
	case u.profiles == "":
	case name == "waiting":
		return u.controller.HeapProfile(ctx, u.profile("waiting.heap"))
	case name == "releasing":
		u.profileLater(ctx, 0, profileAtMost/4, "releasing.cpu")
	case name == "over":
		return u.profiled() // of the start, if it is not complete
	}
	return nil
}

// profileMiddle profiles the controller in the middle of a stream.
func (u *unitsRun) profileMiddle(ctx context.Context) {
	if u.profiles == "" {
		return
	}
	arrivals := u.scenario.Arrivals()
	begin := arrivals[len(arrivals)-1].At / middle
	u.profileLater(ctx, begin, min(begin, profileAtMost), "cpu")
}

// profileLater profiles the controller after a delay.
func (u *unitsRun) profileLater(ctx context.Context, later, during time.Duration, kind string) {
	controller, done := u.controller, make(chan error, 1)
	u.profiling = done
	go func() {
		timer := time.NewTimer(later)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			done <- context.Cause(ctx)
		case <-timer.C:
			server := profileServer(ctx, u.rig, during, u.profiles, u.scenario.Name+"."+kind)
			done <- errors.Join(controller.CPUProfile(ctx, during, u.profile(kind)), <-server)
		}
	}()
}

// profiled waits for the end of a running profile, if any.
func (u *unitsRun) profiled() error {
	if u.profiling == nil {
		return nil
	}
	err := <-u.profiling
	u.profiling = nil
	return err
}

func (u *unitsRun) profile(kind string) string {
	return filepath.Join(u.profiles, fmt.Sprintf("%s.%s.%s.pprof", rig.Controller, u.scenario.Name, kind))
}

// profileServer profiles the API server.
func profileServer(ctx context.Context, r *rig.Rig, during time.Duration, dir, name string) <-chan error {
	done := make(chan error, 1)
	go func() { done <- r.ServerProfile(ctx, during, filepath.Join(dir, "kube-apiserver."+name+".pprof")) }()
	return done
}

// profileTool profiles this tool until the returned function is called.
func profileTool(dir string) (stop func() error, err error) {
	if dir == "" {
		return func() error { return nil }, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	file, err := os.Create(filepath.Join(dir, rig.Tool+".cpu.pprof"))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}
