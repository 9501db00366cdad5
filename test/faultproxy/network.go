package faultproxy

import (
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
)

// Cut is a failure of the complete network.
type Cut int

const (
	whole Cut = iota
	// Refuse breaks all connections, and each new one immediately.
	Refuse
	// Hang drops all data in both directions, also on new connections.
	Hang
)

// network is a listener whose connections can be cut together.
type network struct {
	net.Listener

	mu    sync.Mutex
	state Cut
	links map[*link]struct{}
}

func newNetwork(listener net.Listener) *network {
	return &network{Listener: listener, links: map[*link]struct{}{}}
}

// Accept accepts connections even during a cut. Programs can connect, but receive nothing.
func (n *network) Accept() (net.Conn, error) {
	for {
		conn, err := n.Listener.Accept()
		if err != nil {
			return nil, err
		}
		l := &link{Conn: conn, network: n}
		n.mu.Lock()
		state := n.state
		l.lost.Store(state == Hang)
		if state != Refuse {
			n.links[l] = struct{}{}
		}
		n.mu.Unlock()
		if state != Refuse {
			return l, nil
		}
		l.reset()
	}
}

func (n *network) cut(how Cut) {
	n.change(how, func(l *link) bool {
		l.lost.Store(true)
		return how == Refuse
	})
}

func (n *network) heal() { n.change(whole, func(l *link) bool { return l.lost.Load() }) }

// change sets the state, and resets the links that breaks reports.
func (n *network) change(state Cut, breaks func(*link) bool) {
	n.mu.Lock()
	n.state = state
	var broken []*link
	for l := range n.links {
		if breaks(l) {
			broken = append(broken, l)
		}
	}
	n.mu.Unlock()
	for _, l := range broken {
		l.reset()
	}
}

// link is one connection of a program.
type link struct {
	net.Conn
	network *network
	// lost: all data on this connection is dropped, also after the cut.
	lost atomic.Bool
}

// linkOf returns the link of a connection of the server.
func linkOf(conn net.Conn) *link {
	if secure, is := conn.(*tls.Conn); is {
		conn = secure.NetConn()
	}
	l, _ := conn.(*link)
	return l
}

// Read reads data from the program, unless the link is lost.
func (l *link) Read(p []byte) (int, error) {
	for {
		n, err := l.Conn.Read(p)
		if err != nil || !l.lost.Load() {
			return n, err
		}
	}
}

// Write sends data to the program. On a lost link it drops the data and reports success.
func (l *link) Write(p []byte) (int, error) {
	if l.lost.Load() {
		return len(p), nil
	}
	return l.Conn.Write(p)
}

func (l *link) Close() error {
	l.network.mu.Lock()
	delete(l.network.links, l)
	l.network.mu.Unlock()
	return l.Conn.Close()
}

// reset breaks the connection, so that the program gets an error immediately.
func (l *link) reset() {
	if tcp, is := l.Conn.(*net.TCPConn); is {
		_ = tcp.SetLinger(0)
	}
	_ = l.Close()
}
