package e2e

import (
	"sync"
	"testing"

	"kube-queue.dev/kube-queue/test/faultproxy"
	"kube-queue.dev/kube-queue/test/harness"
)

// When a program is killed, seen from one of its writes.
type moment int

const (
	// beforeEach: each life of the program gets one write through, the first life
	// none, and is killed before its next write reaches the API server. So every
	// write of the story is once cut off before it lands.
	beforeEach moment = iota
	// afterEach: each life is killed when its first write has landed, before it
	// hears of it.
	afterEach
)

// executioner kills a program at its writes, as a fault of the way between it and the
// API server. The program itself knows nothing of it.
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

// execute has the program killed at its writes from now on.
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

// judge lets one write after another through, or kills the program at it.
func (e *executioner) judge(x *faultproxy.Exchange) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dead { // a write that was under way when the program was killed
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

// revive starts the program each time that it was killed, until done.
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
			t.Fatalf("%s ended by itself in its life %d: %v; see %s", e.victim.Name, e.lives, e.victim.Err(), e.victim.Log.Name())
		}
	}
	e.mu.Lock()
	e.off = true
	if e.dead { // the kill may be on its way still
		<-e.victim.Ended()
		e.dead = false
		e.victim.Launch()
	}
	e.mu.Unlock()
	e.victim.WaitReady()
}
