package lease

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// term is the time for which this process may act as the leader. It begins with the
// lease, goes on with each renewal, and is over when the last one is too long ago,
// by the clock that stands still while a machine is suspended or by that on the
// wall, or when the lease is seen in other hands.
//
// The elector alone would notice too late: one whose process was frozen first tries
// for a whole deadline to get its lease back, and all the while what was decided
// before is being written. So the term stands where bytes leave the process. What lies
// between it and the network is a few instructions; a process that is frozen in these
// very ones still writes, and the resourceVersion in what it writes is all that then
// stands in its way.
//
// Invariant: once over, a term never begins again, and no byte goes to the API server.
type term struct {
	now func() instant
	// actFor is how long it lasts after a renewal.
	actFor time.Duration

	mu sync.Mutex
	// held: from when the lease is had, until it is given up in order.
	held bool
	// renewed is when the last renewal was sent that is known to have landed.
	renewed instant
	over    error
	// lost is called once, when the term is over other than in order.
	lost func(why error)
}

var (
	errFrozen = errors.New("the lease was not renewed in time")
	errTaken  = errors.New("another process holds the lease")
)

// instant is a point in time by two clocks.
type instant struct{ steady, wall time.Time }

func now() instant {
	t := time.Now()
	return instant{t, t.Round(0)}
}

// since is by whichever clock went further.
func (i instant) since(earlier instant) time.Duration {
	return max(i.steady.Sub(earlier.steady), i.wall.Sub(earlier.wall))
}

func newTerm(actFor time.Duration) *term { return &term{now: now, actFor: actFor} }

// begin says whom to tell when the term is over.
func (t *term) begin(lost func(why error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost = lost
}

// renew notes a renewal that was sent at the time.
func (t *term) renew(sent instant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held, t.renewed = true, sent
}

// end is the term's end in order: who has stopped working has nothing to lose.
func (t *term) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held, t.lost = false, nil
}

// young reports whether the last renewal is less than a while ago.
func (t *term) young(while time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held && t.now().since(t.renewed) < while
}

// check returns an error when the term is over, and ends the process then.
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

// dial connects to the API server by a connection that the term ends, and over which
// nothing arrives late: what is not acknowledged in time is never sent again, by the
// kernel neither, which else goes on after the process is gone.
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

// termConn lets nothing out once the term is over.
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
