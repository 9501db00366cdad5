package harness

import (
	"maps"
	"regexp"
	"slices"
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
	// AroundEach: a process is killed before a write that no process has tried, and then after it has landed. Writes
	// that were killed twice go through. So a program that begins each of its steps with the same writes gets to the
	// later ones.
	AroundEach
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
	// tried is how often each write was tried.
	tried map[string]int
}

// Execute starts to kill the program at those of its writes that match accepts. Lease renewals do not kill it,
// because they decide nothing.
func (s *Suite) Execute(t testing.TB, victim *Program, when Moment, match func(faultproxy.Request) bool) *Executioner {
	t.Helper()
	proxy, err := faultproxy.Start(s.Config())
	Must(t, err)
	t.Cleanup(func() {
		victim.Stop()
		proxy.Close()
	})
	victim.Kubeconfig, err = proxy.Kubeconfig(victim.Kubeconfig)
	Must(t, err)
	e := &Executioner{victim: victim, moment: when, dead: true, tried: map[string]int{}}
	proxy.Intercept(func(r faultproxy.Request) bool { return r.Resource != "leases" && match(r) }, e.judge)
	return e
}

// ExecuteOneOf kills the victim, which Revive starts, and starts the other program.
func (s *Suite) ExecuteOneOf(t testing.TB, victim, enabled string, when Moment, match func(faultproxy.Request) bool) *Executioner {
	t.Helper()
	programs := map[string]*Program{Controller: s.Program(t, Controller), Extensions: s.Program(t, Extensions, "--enabled-extensions="+enabled)}
	for name, p := range programs {
		if name != victim {
			p.Start()
		}
	}
	return s.Execute(t, programs[victim], when, match)
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
	write := named(x)
	e.tried[write]++
	switch {
	case e.off:
		x.Forward()
	case e.moment == BeforeEach && (e.lives == 1 || e.writes == 2), e.moment == AroundEach && e.tried[write] == 1:
		e.strike(x)
	case e.moment == AfterEach, e.moment == AroundEach && e.tried[write] == 2:
		x.Land()
		e.strike(x)
	default:
		x.Forward()
	}
}

// varying is what differs when a write is repeated.
var varying = regexp.MustCompile(`"resourceVersion":"\d+"|resourceVersion","value":"\d+"|"\d{4}-\d\d-\d\dT[^"]*Z"`)

// named returns a name of a write that stays the same if the write is repeated.
func named(x *faultproxy.Exchange) string {
	return x.Method + " " + x.Resource + "/" + x.Namespace + "/" + x.Name + "/" + x.Subresource + " " + varying.ReplaceAllString(string(x.Body()), "")
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

// Tried returns the writes that the victim has tried, without what differs when they are repeated.
func (e *Executioner) Tried() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.tried))
}
