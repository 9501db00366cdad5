package e2e

import (
	"sync"
	"testing"

	"kube-queue.dev/kube-queue/test/faultproxy"
	"kube-queue.dev/kube-queue/test/harness"
)

// The time of a kill relative to a write.
type moment int

const (
	// beforeEach: each process except for the first completes one write, and is killed before its
	// next write reaches the API server. So each write of the story is lost once.
	beforeEach moment = iota
	// afterEach: each process is killed after its first write has landed, before it receives the
	// response.
	afterEach
)

// executioner kills a program at its writes, with a fault of the proxy between the program and the
// API server.
type executioner struct {
	victim *harness.Program
	moment moment

	mu     sync.Mutex
	lives  int
	writes int
	dead   bool
	kills  int
	off    bool // no more kills
}

// execute starts to kill the program at its writes.
func execute(t testing.TB, victim *harness.Program, when moment) *executioner {
	t.Helper()
	proxy, err := faultproxy.Start(suite.Config())
	harness.Must(t, err)
	t.Cleanup(func() {
		victim.Stop()
		proxy.Close()
	})
	victim.Kubeconfig, err = proxy.Kubeconfig(victim.Kubeconfig)
	harness.Must(t, err)
	e := &executioner{victim: victim, moment: when, dead: true}
	proxy.Set(faultproxy.Rule{Match: faultproxy.Match{Writes: true}, Fault: e.judge})
	return e
}

// judge forwards a write or kills the program at it.
func (e *executioner) judge(x *faultproxy.Exchange) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dead { // a write in flight at the time of the kill
		x.Cut()
		return
	}
	e.writes++
	switch {
	case e.off:
		faultproxy.Forward(x)
	case e.moment == beforeEach && (e.lives == 1 || e.writes == 2):
		e.strike(x)
	case e.moment == afterEach:
		x.Land()
		e.strike(x)
	default:
		faultproxy.Forward(x)
	}
}

// strike kills the program and cuts the connection.
func (e *executioner) strike(x *faultproxy.Exchange) {
	e.dead = true
	e.kills++
	_ = e.victim.Strike()
	x.Cut()
}

// revive restarts the program after each kill, until done.
func (e *executioner) revive(t testing.TB, done func() bool) {
	t.Helper()
	for !done() {
		e.mu.Lock()
		e.lives++
		e.writes, e.dead = 0, false
		e.victim.Launch()
		ended := e.victim.Ended()
		e.mu.Unlock()
		harness.EventuallyQuiet(t, func() bool {
			select {
			case <-ended:
				return true
			default:
				return done()
			}
		})
		e.mu.Lock()
		killed := e.dead
		e.mu.Unlock()
		if !killed && !done() {
			t.Fatalf("%s exited without a kill in its process %d: %v; see %s", e.victim.Name, e.lives, e.victim.Err(), e.victim.Log.Name())
		}
	}
	e.mu.Lock()
	e.off = true
	if e.dead { // the process may not have exited yet
		<-e.victim.Ended()
		e.dead = false
		e.victim.Launch()
	}
	e.mu.Unlock()
	e.victim.WaitReady()
}
