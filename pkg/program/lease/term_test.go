package lease

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"kube-queue.dev/kube-queue/test/require"
)

// watch is a clock that the test sets.
type watch struct {
	mu   sync.Mutex
	time instant
}

func newWatch() *watch { return &watch{time: now()} }

func (w *watch) now() instant {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.time
}

func (w *watch) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.time = instant{w.time.steady.Add(d), w.time.wall.Add(d)}
}

// suspend advances only the wall clock.
func (w *watch) suspend(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.time.wall = w.time.wall.Add(d)
}

// termOf returns a term that uses the clock, and the causes of its loss.
func termOf(clock *watch) (*term, *[]error) {
	t := newTerm(defaultTimes().actFor())
	t.now = clock.now
	var causes []error
	t.begin(func(why error) { causes = append(causes, why) })
	return t, &causes
}

// arrivals listens for one connection, and returns everything that it has received once it is closed.
func arrivals(t *testing.T) (address string, all func() string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	came := make(chan string, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			came <- err.Error()
			return
		}
		defer conn.Close()
		text, _ := io.ReadAll(conn)
		came <- string(text)
	}()
	return listener.Addr().String(), func() string { return <-came }
}

func TestWhoWasFrozenPastItsLeaseWritesNothingMore(t *testing.T) {
	for _, test := range []struct {
		name   string
		frozen time.Duration
		arrive string
	}{
		{"for a moment", defaultTimes().actFor() - time.Second, "beforeafter"},
		{"for too long", defaultTimes().actFor(), "before"},
		{"for an hour", time.Hour, "before"},
	} {
		t.Run(test.name, func(t *testing.T) {
			clock := newWatch()
			term, causes := termOf(clock)
			address, came := arrivals(t)
			conn, err := term.dial(t.Context(), "tcp", address)
			require.NoError(t, err)
			term.renew(clock.now())
			_, err = conn.Write([]byte("before"))
			require.NoError(t, err)
			clock.pass(test.frozen)
			_, first := conn.Write([]byte("after"))
			term.renew(clock.now()) // too late: a term that is over does not begin again
			lost := test.arrive == "before"
			if lost {
				_, _ = conn.Write([]byte("again"))
			}
			if lost != errors.Is(first, errFrozen) || lost != (len(*causes) == 1) {
				t.Errorf("the write returned %v, and the lease was lost for %v", first, *causes)
			}
			_ = conn.Close()
			if got := came(); got != test.arrive {
				t.Errorf("%q arrived, want %q", got, test.arrive)
			}
		})
	}
}

func TestASuspendedMachineIsKnownByTheClockOnTheWall(t *testing.T) {
	clock := newWatch()
	term, causes := termOf(clock)
	term.renew(clock.now())
	clock.suspend(defaultTimes().actFor())
	if err := term.check(); !errors.Is(err, errFrozen) || len(*causes) != 1 {
		t.Errorf("check returned %v, and the lease was lost for %v", err, *causes)
	}
}

func TestWhoDoesNotLeadOrHasGivenUpInOrderIsNotEnded(t *testing.T) {
	clock := newWatch()
	term, causes := termOf(clock)
	if err := term.check(); err != nil {
		t.Errorf("before it leads: %v", err)
	}
	term.renew(clock.now())
	term.end()
	clock.pass(time.Hour)
	if err := term.check(); err != nil {
		t.Errorf("after it has led: %v", err)
	}
	if len(*causes) > 0 {
		t.Errorf("the lease was lost for %v", *causes)
	}
}

// paperLock is a lease that records what is done with it.
type paperLock struct {
	resourcelock.Interface
	record  resourcelock.LeaderElectionRecord
	updates int
	err     error
}

func (p *paperLock) Identity() string { return "me" }

func (p *paperLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record := p.record
	return &record, nil, p.err
}

func (p *paperLock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	p.updates++
	if p.err == nil {
		p.record = record
	}
	return p.err
}

func TestALeaseIsRenewedNoMoreOftenThanNeeded(t *testing.T) {
	clock := newWatch()
	term, _ := termOf(clock)
	paper := &paperLock{}
	lock := &leaseLock{Interface: paper, term: term}
	mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}
	for range 20 { // ten seconds
		require.NoError(t, lock.Update(t.Context(), mine))
		clock.pass(retryPeriod)
	}
	if paper.updates != 5 {
		t.Errorf("renewed %d times within 10 s, want 5", paper.updates)
	}
}

func TestARenewalThatFailedIsTriedAgainAndDoesNotCount(t *testing.T) {
	clock := newWatch()
	term, _ := termOf(clock)
	paper := &paperLock{err: errors.New("no answer")}
	lock := &leaseLock{Interface: paper, term: term}
	mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}
	for range 2 {
		if err := lock.Update(t.Context(), mine); err == nil {
			t.Error("a failure is not reported")
		}
	}
	if term.holds() || paper.updates != 2 {
		t.Errorf("%d tries, leads: %t", paper.updates, term.holds())
	}
}

func TestWhoFindsItsLeaseInOtherHandsIsGoneAtOnce(t *testing.T) {
	clock := newWatch()
	term, causes := termOf(clock)
	paper := &paperLock{}
	lock := &leaseLock{Interface: paper, term: term}
	require.NoError(t, lock.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me"}))
	paper.record.HolderIdentity = "another"
	if _, _, err := lock.Get(t.Context()); !errors.Is(err, errTaken) || len(*causes) != 1 {
		t.Errorf("Get returned %v, and the lease was lost for %v", err, *causes)
	}
}
