package lease

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// term is the time in which this process may act as the leader. It begins when the process acquires the lease, and
// each renewal extends it. It is over when the last renewal is too long ago, by the monotonic clock (which stops
// while the machine is suspended) or by the wall clock, or when another process is seen to hold the lease.
//
// The elector alone would detect this too late: after a freeze, it first tries to renew the lease for the whole
// renewDeadline, and meanwhile the process writes earlier decisions. So the term is checked where bytes leave the
// process. Only a few instructions separate this check from the network. A process that is frozen exactly there still
// sends its write, and only the resourceVersion in that write prevents a conflict.
//
// Invariant: once over, a term never begins again, and no byte is sent to the API server.
type term struct {
	now func() instant
	// actFor is how long the term lasts after a renewal.
	actFor time.Duration

	mu sync.Mutex
	// held is true from the acquisition of the lease until its orderly release.
	held bool
	// renewed is when the last successful renewal was sent.
	renewed instant
	over    error
	// lost is called once if the term ends without an orderly release.
	lost func(why error)
}

var (
	errFrozen = errors.New("this process did not renew the lease in time; check its connection to the API server and its CPU")
	errTaken  = errors.New("another process holds the lease, because this one did not renew it in time")
)

// instant is a point in time by two clocks.
type instant struct{ steady, wall time.Time }

func now() instant {
	t := time.Now()
	return instant{t, t.Round(0)}
}

// since returns the elapsed time, by the clock that advanced more.
func (i instant) since(earlier instant) time.Duration {
	return max(i.steady.Sub(earlier.steady), i.wall.Sub(earlier.wall))
}

func newTerm(actFor time.Duration) *term { return &term{now: now, actFor: actFor} }

// begin sets the function to call when the term is lost.
func (t *term) begin(lost func(why error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost = lost
}

// renew records a renewal that was sent at the given time.
func (t *term) renew(sent instant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held, t.renewed = true, sent
}

// end ends the term in an orderly way, after the work has stopped.
func (t *term) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held, t.lost = false, nil
}

// young reports whether the last renewal was sent less than the given time ago.
func (t *term) young(age time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held && t.now().since(t.renewed) < age
}

// check returns an error if the term is over, and exits the process in that case.
func (t *term) check() error {
	t.mu.Lock()
	late := t.over == nil && t.held && t.now().since(t.renewed) >= t.actFor
	over := t.over
	t.mu.Unlock()
	if late {
		return t.lose(errFrozen)
	}
	return over
}

// lose ends the term. Only the first cause is reported.
func (t *term) lose(why error) error {
	t.mu.Lock()
	first := t.over == nil
	if first {
		t.over = why
	}
	lost := t.lost
	t.mu.Unlock()
	if first && lost != nil {
		lost(why)
	}
	return why
}

// holds reports whether this process leads, as far as it knows.
func (t *term) holds() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over == nil && t.held
}

// dial opens a connection to the API server that sends nothing once the term is over. Data that is not acknowledged
// in time is never sent again, not even by the kernel, which would otherwise retransmit it after the process has
// exited.
func (t *term) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{
		Timeout:         30 * time.Second,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: keepAlive, Interval: keepAlive},
		Control:         giveUpAfter(writeTimeout),
	}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &termConn{Conn: conn, term: t}, nil
}

// termConn sends nothing once the term is over.
type termConn struct {
	net.Conn
	term *term
}

func (c *termConn) Write(p []byte) (int, error) {
	if err := c.term.check(); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
