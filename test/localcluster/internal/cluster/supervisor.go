package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"kube-queue.dev/kube-queue/test/localcluster/internal/kube"
	"kube-queue.dev/kube-queue/test/localcluster/internal/process"
)

// crashLines is the number of log lines shown after a crash.
const crashLines = 20

// Supervisor runs one cluster in one data folder, whose lock the caller holds.
type Supervisor struct {
	folder  Folder
	config  Config
	starter *process.Starter
	// say reports progress during the start.
	say func(format string, args ...any)
	// pickPorts is replaced by tests that need a port in use.
	pickPorts func([]string) (Ports, error)

	// stop ends the run with a cause.
	stop context.CancelCauseFunc

	// routes are the routes of Services to programs without pods.
	routes routeTable
	// changing is held while the version of the control plane changes.
	changing sync.Mutex

	saving sync.Mutex

	mu      sync.Mutex
	phase   Phase
	detail  string
	failure string
	ready   *Ready
	parts   []*runningPart
	// setup is the setup of the current attempt to start.
	setup *setup
	// abort ends the current attempt to start.
	abort context.CancelCauseFunc
}

// runningPart is a part that was started and may have ended.
type runningPart struct {
	part
	process  *process.Process
	state    State
	stopping bool
	exit     string
	// ended is closed after the end is recorded and saved.
	ended chan struct{}
}

func (r *runningPart) lives() bool { return r.state == StateStarting || r.state == StateReady }

// crash is the error of a part that ended unexpectedly.
type crash struct{ part, exit, logEnd string }

func (c *crash) Error() string {
	end := c.logEnd
	if strings.TrimSpace(end) == "" {
		end = "(its log is empty)"
	}
	return fmt.Sprintf("%s crashed: %s; the end of its log:\n%s", c.part, c.exit, end)
}

// errStop is the cause of a requested stop.
var errStop = errors.New("stopped")

var errNameTaken = errors.New("a part or program with this name is already running")

// NewSupervisor returns a supervisor for a prepared folder.
func NewSupervisor(folder Folder, say func(format string, args ...any)) (*Supervisor, error) {
	config, err := folder.config()
	if err != nil {
		return nil, err
	}
	return &Supervisor{
		folder: folder, config: config, say: say,
		starter:   process.NewStarter(),
		pickPorts: pickPorts,
		phase:     PhaseStarting,
		abort:     func(error) {},
	}, nil
}

// Run starts the cluster, reports when it is ready, and returns when all of its processes have
// ended: because the context ended, a stop was requested over the control socket, or a part
// crashed. Only a crash and a failed start are errors.
func (s *Supervisor) Run(outer context.Context, ready func(Ready)) error {
	ctx, stop := context.WithCancelCause(outer)
	s.stop = stop
	defer s.stop(nil)

	for _, listen := range []func() (func(), error){s.listen, s.listenEgress} {
		end, err := listen()
		if err != nil {
			return err
		}
		defer end()
	}
	s.save()

	err := s.start(ctx)
	if err == nil {
		err = s.becomeReady()
	}
	if err == nil {
		ready(*s.ready)
		<-ctx.Done()
	}

	// The reason why the context ended is more useful than the resulting error of the start.
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	failed := err != nil && !errors.Is(err, errStop) && outer.Err() == nil
	s.setPhase(PhaseStopping)
	s.stopAll()
	s.mu.Lock()
	s.phase, s.detail = PhaseStopped, ""
	if failed {
		s.phase, s.failure = PhaseFailed, err.Error()
	}
	s.mu.Unlock()
	s.save()
	if failed {
		return err
	}
	return nil
}

// becomeReady completes the start, unless a part that was ready has crashed.
func (s *Supervisor) becomeReady() error {
	defer s.save()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, running := range s.parts {
		if running.state == StateCrashed && running.rank != rankProgram {
			return s.crashOf(running)
		}
	}
	s.phase, s.detail = PhaseReady, ""
	return nil
}

// run starts a part and waits until it is ready.
func (s *Supervisor) run(ctx context.Context, p part) error {
	s.mu.Lock()
	if s.phase != PhaseStarting && s.phase != PhaseReady && s.phase != PhaseUpgrading || ctx.Err() != nil {
		s.mu.Unlock()
		return fmt.Errorf("start %s: %w", p.name, errStop)
	}
	if slices.ContainsFunc(s.parts, func(r *runningPart) bool { return r.name == p.name && r.lives() }) {
		s.mu.Unlock()
		return fmt.Errorf("start %s: %w", p.name, errNameTaken)
	}
	started, err := s.starter.Start(p.spec)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	running := &runningPart{part: p, process: started, state: StateStarting, ended: make(chan struct{})}
	s.parts = append(slices.DeleteFunc(s.parts, func(r *runningPart) bool { return r.name == p.name }), running)
	s.mu.Unlock()
	s.save()
	go s.watch(running)

	if p.ready != nil {
		alive, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() {
			<-started.Done()
			cancel()
		}()
		err = waitFor(alive, p.name+" does not become ready", p.ready)
	}
	if started.Ended() {
		<-running.ended
		return s.crashOf(running)
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.DeadlineExceeded) {
			return cause
		}
		return fmt.Errorf("%w; the end of its log:\n%s", err, process.Tail(p.spec.Log, crashLines))
	}
	s.mu.Lock()
	if running.state == StateStarting {
		running.state = StateReady
	}
	s.mu.Unlock()
	s.save()
	return nil
}

// watch records the end of a part. The unexpected end of a core part or an operator stops the
// cluster.
func (s *Supervisor) watch(running *runningPart) {
	<-running.process.Done()
	s.mu.Lock()
	running.exit = running.process.Exit()
	running.state = StateCrashed
	if running.stopping || running.rank == rankProgram && running.process.Err() == nil {
		running.state = StateStopped
	}
	crashed, end := running.state == StateCrashed, s.stop
	if s.phase == PhaseStarting || s.phase == PhaseUpgrading {
		end = s.abort
	}
	s.mu.Unlock()
	s.save()
	close(running.ended)
	if !crashed {
		return
	}
	s.say("%s crashed: %s", running.name, running.exit)
	if running.rank != rankProgram {
		end(s.crashOf(running))
	}
}

func (s *Supervisor) crashOf(running *runningPart) error {
	<-running.process.Done()
	return &crash{running.name, running.process.Exit(), process.Tail(running.spec.Log, crashLines)}
}

// stopAll stops the parts rank by rank, and returns when all have exited.
func (s *Supervisor) stopAll() {
	for rank := rankProgram; rank >= rankEtcd; rank-- {
		var stopping sync.WaitGroup
		s.mu.Lock()
		for _, running := range s.parts {
			if running.rank == rank {
				stopping.Go(func() { s.stopPart(running) })
			}
		}
		s.mu.Unlock()
		stopping.Wait()
	}
}

func (s *Supervisor) stopPart(running *runningPart) {
	if running.process.Ended() {
		return
	}
	s.mu.Lock()
	running.stopping = true
	s.mu.Unlock()
	began := time.Now()
	running.process.Stop(running.grace)
	<-running.ended
	s.say("%s stopped in %v", running.name, time.Since(began).Truncate(10*time.Millisecond))
}

// current returns the setup of the cluster, and its phase.
func (s *Supervisor) current() (*setup, Phase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.setup, s.phase
}

// client returns the client of the API server.
func (s *Supervisor) client() *kube.Client {
	setup, _ := s.current()
	return setup.api
}

// partNamed returns the part with a name, or nil.
func (s *Supervisor) partNamed(name string) *runningPart {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, running := range s.parts {
		if running.name == name {
			return running
		}
	}
	return nil
}

func (s *Supervisor) setPhase(phase Phase) {
	s.mu.Lock()
	s.phase = phase
	s.mu.Unlock()
	s.save()
}

func (s *Supervisor) setDetail(format string, args ...any) {
	s.mu.Lock()
	s.detail = fmt.Sprintf(format, args...)
	detail := s.detail
	s.mu.Unlock()
	s.save()
	s.say("%s", detail)
}

// status returns the current status.
func (s *Supervisor) status() *Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := &Status{
		Data: string(s.folder), Socket: s.folder.socket(), Phase: s.phase, Detail: s.detail, Failure: s.failure,
		Supervisor: process.Self(), Ready: s.ready, Parts: []PartStatus{},
	}
	for _, running := range s.parts {
		status.Parts = append(status.Parts, running.status())
	}
	return status
}

func (r *runningPart) status() PartStatus {
	status := PartStatus{
		Name: r.name, Kind: r.rank.String(), State: r.state, Identity: r.process.Identity, Log: r.spec.Log, Exit: r.exit,
	}
	if r.state == StateCrashed {
		status.LogEnd = process.Tail(r.spec.Log, crashLines)
	}
	return status
}

// save saves the status in the data folder. A failure, such as a full disk, is only reported.
func (s *Supervisor) save() {
	s.saving.Lock()
	defer s.saving.Unlock()
	// Under the lock, so that an older status does not replace a newer one.
	if err := s.folder.saveState(s.status()); err != nil {
		s.say("cannot save the state: %v", err)
	}
}
