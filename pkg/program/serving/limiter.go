package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// limiter enforces the limits of a server. At too many connections, or too many bytes of bodies, it closes the
// connection that has kept the server waiting longest. So intentionally slow clients cannot keep others out: a genuine
// request arrives within milliseconds. A request that has arrived is answered.
type limiter struct {
	limits  Limits
	handler http.Handler
	// answers has an element for each answer that is being computed, and large one for the answer to a large request.
	// answers is nil without a limit.
	answers, large chan struct{}
	// pool has unused chunks.
	pool sync.Pool

	mu sync.Mutex
	// open are all connections, and chunks is the number of their chunks.
	open   map[*connection]struct{}
	chunks int
	steps  uint64
}

func newLimiter(limits Limits, handler http.Handler) *limiter {
	l := &limiter{limits: limits, handler: handler, open: map[*connection]struct{}{}, large: make(chan struct{}, 1)}
	l.pool.New = func() any { return new(chunk) }
	if limits.Answers > 0 {
		l.answers = make(chan struct{}, limits.Answers)
	}
	return l
}

// headerSlack is by how many bytes net/http exceeds MaxHeaderBytes.
const headerSlack = 4 << 10

// server returns a server with the limits. HTTP/2 would need its own limits, and API servers call webhooks over
// HTTP/1.1.
func (l *limiter) server() *http.Server {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	return &http.Server{Handler: l, Protocols: protocols, ConnContext: withConnection, MaxHeaderBytes: max(1, l.limits.Header-headerSlack),
		ReadHeaderTimeout: l.limits.HeaderTime, ReadTimeout: l.limits.RequestTime, WriteTimeout: l.limits.AnswerTime, IdleTimeout: l.limits.IdleTime}
}

// connection is an open connection. The mutex of the limiter guards everything except Conn.
type connection struct {
	net.Conn
	limiter *limiter
	// since orders connections by when they began to keep the server waiting. It does not count while the server is
	// answering.
	since     uint64
	answering bool
	// chunks hold the part of the body that has arrived. cut is whether they went to other connections.
	chunks []*chunk
	cut    bool
}

// Close closes the connection.
func (c *connection) Close() error {
	c.limiter.mu.Lock()
	delete(c.limiter.open, c)
	c.limiter.mu.Unlock()
	return c.Conn.Close()
}

// listener limits the connections of a listener.
type listener struct {
	net.Listener
	limiter *limiter
}

func (l listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: conn, limiter: l.limiter}
	if loser := l.limiter.admit(c); loser != nil {
		_ = loser.Close()
	}
	return c, nil
}

// admit counts a new connection. It returns the connection to close, which can be the new one.
func (l *limiter) admit(c *connection) (loser *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= l.limits.Connections {
		if loser = l.slowest(func(*connection) bool { return true }); loser == nil {
			return c
		}
		delete(l.open, loser)
	}
	l.open[c] = struct{}{}
	l.wait(c)
	return loser
}

// wait records that the connection begins to keep the server waiting.
func (l *limiter) wait(c *connection) {
	l.steps++
	c.since, c.answering = l.steps, false
}

// slowest returns the connection that has kept the server waiting longest; nil if there is none.
func (l *limiter) slowest(of func(*connection) bool) (found *connection) {
	for c := range l.open {
		if !c.answering && of(c) && (found == nil || c.since < found.since) {
			found = c
		}
	}
	return found
}

// connectionKey is the key of the connection in the context of its requests.
type connectionKey struct{}

func withConnection(ctx context.Context, conn net.Conn) context.Context {
	if secure, is := conn.(*tls.Conn); is {
		conn = secure.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, conn)
}

func (l *limiter) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	c := req.Context().Value(connectionKey{}).(*connection)
	l.begin(c)
	defer l.end(c)
	size, err := l.receive(c, req)
	if err != nil {
		refuse(w, err)
		return
	}
	if l.answers == nil {
		l.handler.ServeHTTP(w, req)
		return
	}
	end, err := l.turn(req.Context(), size)
	if err != nil { // the client has given up
		return
	}
	defer end()
	l.handler.ServeHTTP(&answer{w, end}, req)
}

func (l *limiter) begin(c *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wait(c)
}

func (l *limiter) end(c *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free(c)
	l.wait(c)
}

// largeBody is the size, in bytes, above which only one body is answered at a time. Decoded JSON can be many times as
// large.
const largeBody = 64 << 10

// turn waits until an answer can be computed. end can be called several times.
func (l *limiter) turn(ctx context.Context, size int) (end func(), err error) {
	var taken []chan struct{}
	end = sync.OnceFunc(func() {
		for _, one := range taken {
			<-one
		}
	})
	wanted := []chan struct{}{l.answers}
	if size > largeBody {
		wanted = []chan struct{}{l.large, l.answers}
	}
	for _, one := range wanted {
		select {
		case one <- struct{}{}:
			taken = append(taken, one)
		case <-ctx.Done():
			end()
			return nil, ctx.Err()
		}
	}
	return end, nil
}

// answer ends the turn when the first byte is written, so that a client that reads slowly does not block it.
type answer struct {
	http.ResponseWriter
	computed func()
}

func (a *answer) WriteHeader(status int) {
	a.computed()
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(text []byte) (int, error) {
	a.computed()
	return a.ResponseWriter.Write(text)
}

var (
	errBusy     = errors.New("too many requests are in flight")
	errTooLarge = errors.New("the body of the request is too large")
)

// refuse answers a request that has not fully arrived. If the server is busy, an API server retries after a second.
func refuse(w http.ResponseWriter, err error) {
	var network net.Error
	status := http.StatusBadRequest
	switch {
	case errors.Is(err, errTooLarge):
		status = http.StatusRequestEntityTooLarge
	case errors.Is(err, errBusy):
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	case errors.As(err, &network) && network.Timeout():
		status = http.StatusRequestTimeout
	}
	w.Header().Set("Connection", "close")
	http.Error(w, err.Error(), status)
	if status == http.StatusServiceUnavailable {
		// After an answer, net/http keeps the connection for a while if it has not read the whole request. net/http
		// recovers from this panic and closes the connection immediately, after all deferred calls and without a log
		// message.
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// longAgo is a deadline that has passed.
var longAgo = time.Unix(1, 0)
