package harness

import (
	"sync"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/faultproxy"
)

// Moment is the time of a kill relative to a write.
type Moment int

const (
	// BeforeEach: each process except for the first completes one write, and is killed before its
	// next write reaches the API server. So each write of the story is lost once.
	BeforeEach Moment = iota
	// AfterEach: each process is killed after its first write has landed, before it receives the
	// response.
	AfterEach
)

// Executioner kills a program at its writes, with a fault of the proxy between the program and the
// API server.
type Executioner struct {
	// Kills is how often the program was killed.
	Kills int

	victim *Program
	moment Moment

	mu     sync.Mutex
	lives  int
	writes int
	dead   bool
	off    bool // no more kills
}

// Execute starts one of the two programs, and kills the other one, the victim, at its writes. Revive starts the
// victim. Lease renewals do not kill it, because they decide nothing.
func (s *Suite) Execute(t testing.TB, victim string, when Moment) *Executioner {
	t.Helper()
	programs := map[string]*Program{Controller: s.Program(t, Controller), Extensions: s.Program(t, Extensions, "--enabled-extensions=tfjob,job")}
	for name, p := range programs {
		if name != victim {
			p.Start()
		}
	}
	e := &Executioner{victim: programs[victim], moment: when, dead: true}
	proxy, err := faultproxy.Start(s.Config())
	Must(t, err)
	t.Cleanup(func() {
		e.victim.Stop()
		proxy.Close()
	})
	e.victim.Kubeconfig, err = proxy.Kubeconfig(e.victim.Kubeconfig)
	Must(t, err)
	proxy.Intercept(func(r faultproxy.Request) bool { return r.Resource != "leases" }, e.judge)
	return e
}

// judge forwards a write or kills the program at it.
func (e *Executioner) judge(x *faultproxy.Exchange) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dead { // a write in flight at the time of the kill
		x.Cut()
		return
	}
	e.writes++
	switch {
	case e.off:
		x.Forward()
	case e.moment == BeforeEach && (e.lives == 1 || e.writes == 2):
		e.strike(x)
	case e.moment == AfterEach:
		x.Land()
		e.strike(x)
	default:
		x.Forward()
	}
}

// strike kills the program and cuts the connection.
func (e *Executioner) strike(x *faultproxy.Exchange) {
	e.dead = true
	e.Kills++
	_ = e.victim.Strike()
	x.Cut()
}

// Revive starts the program, and again after each kill, until done.
func (e *Executioner) Revive(t testing.TB, done func() bool) {
	t.Helper()
	for !done() {
		e.mu.Lock()
		e.lives++
		e.writes, e.dead = 0, false
		e.victim.Launch()
		e.mu.Unlock()
		Eventually(t, 2*time.Minute, "the program is killed or the story has ended", func() (bool, string) {
			return e.victim.HasEnded() || done(), "neither"
		})
		e.mu.Lock()
		killed := e.dead
		e.mu.Unlock()
		if killed {
			e.victim.Forget()
		} else if !done() {
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
