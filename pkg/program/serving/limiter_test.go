package serving

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"kube-queue.dev/kube-queue/pkg/metrics"
	"kube-queue.dev/kube-queue/pkg/program/selfsigned"
	"kube-queue.dev/kube-queue/test/freeport"
	"kube-queue.dev/kube-queue/test/require"
)

const chunkSize = len(chunk{})

// patient returns limits with times that no test reaches.
func patient() Limits {
	return Limits{Connections: 100, Header: 4 << 10, Body: 8 * chunkSize, Bodies: 64 * chunkSize, Answers: 2,
		HeaderTime: time.Hour, RequestTime: time.Hour, IdleTime: time.Hour, AnswerTime: time.Hour}
}

// limited is a server within limits.
type limited struct {
	*limiter
	t       *testing.T
	address string
}

func newLimited(t *testing.T, limits Limits, handler http.HandlerFunc) *limited {
	t.Helper()
	return newLimitedBy(t, limits, handler, (*http.Server).Serve)
}

// newLimitedBy serves with a function.
func newLimitedBy(t *testing.T, limits Limits, handler http.HandlerFunc, serve func(*http.Server, net.Listener) error) *limited {
	t.Helper()
	opened, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &limited{newLimiter(limits, handler), t, opened.Addr().String()}
	server := l.server()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = serve(server, listener{opened, l.limiter})
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
	return l
}

// echo answers with the body.
func echo(w http.ResponseWriter, req *http.Request) {
	if _, err := io.Copy(w, req.Body); err != nil {
		panic(err)
	}
}

// used returns the numbers of connections and chunks in use.
func (l *limited) used() (open, chunks int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open), l.chunks
}

// eventually waits until this many connections and chunks are used.
func (l *limited) eventually(open, chunks int) {
	l.t.Helper()
	require.Eventually(l.t, fmt.Sprintf("%d connections and %d chunks are used", open, chunks), func() error {
		if hasOpen, hasChunks := l.used(); hasOpen != open || hasChunks != chunks {
			return fmt.Errorf("%d and %d are used", hasOpen, hasChunks)
		}
		return nil
	})
}

// within checks the limits.
func (l *limited) within() {
	l.t.Helper()
	if open, chunks := l.used(); open > l.limits.Connections || chunks*chunkSize > l.limits.Bodies {
		l.t.Errorf("%d connections and %d chunks are used", open, chunks)
	}
}

// client is a client's connection.
type client struct {
	net.Conn
	t *testing.T
}

// send opens a connection and sends text.
func (l *limited) send(text string) client {
	l.t.Helper()
	conn, err := net.Dial("tcp", l.address)
	require.NoError(l.t, err)
	l.t.Cleanup(func() { _ = conn.Close() })
	_, _ = io.WriteString(conn, text) // the server may close it meanwhile
	return client{conn, l.t}
}

// post returns a request that promises a body of one size and sends one of another size.
func post(promised, sent int) string {
	return fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", promised, strings.Repeat("x", sent))
}

// answer reads an answer; nil if the server has closed the connection.
func (c client) answer() *http.Response {
	c.t.Helper()
	require.NoError(c.t, c.SetReadDeadline(time.Now().Add(30*time.Second)))
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if wait.Interrupted(err) || isTimeout(err) {
		c.t.Fatal("no answer, and the connection is open")
	}
	if err != nil {
		return nil
	}
	return response
}

func isTimeout(err error) bool {
	timeout, is := err.(net.Error)
	return is && timeout.Timeout()
}

// gets reads an answer and expects its status; 0 if the server must have closed the connection.
func (c client) gets(want int) {
	c.t.Helper()
	status := 0
	if answer := c.answer(); answer != nil {
		status = answer.StatusCode
	}
	if status != want {
		c.t.Errorf("the status is %d, want %d", status, want)
	}
}

// request sends a complete request on its own connection, and checks that the answer has its body.
func (l *limited) request(size int) {
	l.t.Helper()
	c := l.send(post(size, size))
	answer := c.answer()
	if answer == nil || answer.StatusCode != http.StatusOK {
		l.t.Fatalf("the answer is %+v", answer)
	}
	if body, err := io.ReadAll(answer.Body); err != nil || string(body) != strings.Repeat("x", size) {
		l.t.Errorf("the answer has %d bytes, want %d (%v)", len(body), size, err)
	}
	_ = c.Close()
}

func TestEachTimeIsLimited(t *testing.T) {
	for name, test := range map[string]struct {
		limit  func(*Limits)
		text   string
		status int
	}{
		"nothing is sent":   {func(l *Limits) { l.HeaderTime = time.Millisecond }, "", 0},
		"half of a header":  {func(l *Limits) { l.HeaderTime = time.Millisecond }, "POST / HTTP/1.1\r\nHost: x\r\n", 0},
		"half of a body":    {func(l *Limits) { l.RequestTime = 100 * time.Millisecond }, post(100, 50), http.StatusRequestTimeout},
		"no second request": {func(l *Limits) { l.IdleTime = time.Millisecond }, post(0, 0), http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			limits := patient()
			test.limit(&limits)
			l := newLimited(t, limits, echo)
			l.send(test.text).gets(test.status)
			l.eventually(0, 0)
		})
	}
}

func TestTheTimeOfATLSHandshakeIsLimited(t *testing.T) {
	limits := patient()
	limits.HeaderTime = time.Millisecond
	l := secure(t, limits)
	l.send("\x16\x03\x01").gets(0)
	l.eventually(0, 0)
}

// secure is a server with a certificate.
func secure(t *testing.T, limits Limits) *limited {
	t.Helper()
	pair, err := selfsigned.Make([]string{"localhost"}, time.Now())
	require.NoError(t, err)
	certificate, err := pair.Load()
	require.NoError(t, err)
	return newLimitedBy(t, limits, echo, func(server *http.Server, opened net.Listener) error {
		server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*certificate}}
		return server.ServeTLS(opened, "", "")
	})
}

func TestRequestsComeByHTTP1(t *testing.T) {
	l := secure(t, patient())
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Post("https://"+l.address, "", strings.NewReader("x"))
	require.NoError(t, err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || response.ProtoMajor != 1 {
		t.Errorf("the answer is %s by %s", response.Status, response.Proto)
	}
}

func TestALargeHeaderIsRefused(t *testing.T) {
	l := newLimited(t, patient(), echo)
	l.send("GET / HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("x", 8<<10)).gets(http.StatusRequestHeaderFieldsTooLarge)
}

func TestBodiesHaveALargestSize(t *testing.T) {
	limits := patient()
	chunked := func(size int) string {
		return fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", size, strings.Repeat("x", size))
	}
	without := withoutBodies()
	for name, test := range map[string]struct {
		limits Limits
		text   string
		status int
	}{
		"the largest":                       {limits, post(limits.Body, limits.Body), http.StatusOK},
		"a byte more":                       {limits, post(limits.Body+1, 0), http.StatusRequestEntityTooLarge},
		"the largest, without a length":     {limits, chunked(limits.Body), http.StatusOK},
		"a byte more, without a length":     {limits, chunked(limits.Body + 1), http.StatusRequestEntityTooLarge},
		"a byte where none is expected":     {without, post(1, 1), http.StatusRequestEntityTooLarge},
		"a chunk where none is expected":    {without, chunked(1), http.StatusRequestEntityTooLarge},
		"nothing, where none is expected":   {without, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", http.StatusOK},
		"the largest of a job":              {ForWebhooks(8 << 20), post(8<<20, 8<<20), http.StatusOK},
		"more than the largest of a review": {ForWebhooks(512 << 10), post(8<<20, 0), http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLimited(t, test.limits, echo)
			c := l.send(test.text)
			c.gets(test.status)
			_ = c.Close()
			l.eventually(0, 0)
		})
	}
}

func TestEachEndpointIsLimited(t *testing.T) {
	o := DefaultOptions()
	o.healthAddress, o.profilingAddress, o.metrics = freeAddress(t), freeAddress(t), metricsOptions{address: freeAddress(t)}
	for address, serve := range map[string]func() (func(), error){
		o.healthAddress:    func() (func(), error) { return o.Health(t.Context(), NewHealth(func(bool) {})) },
		o.profilingAddress: func() (func(), error) { return o.Profiles(t.Context()) },
		o.metrics.address: func() (func(), error) {
			return o.Metrics(t.Context(), Metrics{Registry: metrics.New("thing", "v1")})
		},
	} {
		stop, err := serve()
		require.NoError(t, err)
		l := &limited{t: t, address: address}
		l.send(post(1, 1)).gets(http.StatusRequestEntityTooLarge)
		stop()
	}
}

// freeAddress returns an address without a listener.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := freeport.Address()
	require.NoError(t, err)
	return address
}

// An intentionally slow client loses its connection or its bytes to others.
func TestGenuineRequestsAreAnsweredBesideSlowOnes(t *testing.T) {
	limits := patient()
	var l *limited
	l = newLimited(t, limits, func(w http.ResponseWriter, req *http.Request) {
		l.within()
		echo(w, req)
	})
	slow := []string{"", "POST / HTTP/1.1\r\nHost:", post(limits.Body, 1), post(limits.Body, 3*chunkSize)}
	var clients []client
	for i := range 200 {
		clients = append(clients, l.send(slow[i%len(slow)]))
	}
	for i := range 50 {
		l.request(i)
		l.request(5*chunkSize + i)
		clients = append(clients, l.send(slow[i%len(slow)]))
		l.within()
	}
	for _, c := range clients {
		_ = c.Close()
	}
	l.eventually(0, 0)
}

func TestWhatARequestUsedIsFreeAfterwards(t *testing.T) {
	limits := patient()
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		text    string
		status  int
	}{
		"answered":                  {echo, post(3*chunkSize, 3*chunkSize), http.StatusOK},
		"the handler reads nothing": {func(http.ResponseWriter, *http.Request) {}, post(3*chunkSize, 3*chunkSize), http.StatusOK},
		"the handler panics":        {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, post(3*chunkSize, 3*chunkSize), 0},
		"too large":                 {echo, post(limits.Body+1, 3*chunkSize), http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLimited(t, limits, test.handler)
			for range 5 { // more than Answers
				c := l.send(test.text)
				c.gets(test.status)
				_ = c.Close()
			}
			l.eventually(0, 0)
			if len(l.answers)+len(l.large) > 0 {
				t.Errorf("%d answers are computed, %d of them to large requests", len(l.answers), len(l.large))
			}
		})
	}
	t.Run("the client gives up", func(t *testing.T) {
		l := newLimited(t, limits, echo)
		c := l.send(post(limits.Body, 3*chunkSize+1))
		l.eventually(1, 4)
		_ = c.Close()
		l.eventually(0, 0)
	})
}

// busy returns a server that is answering this many requests of this size until release is called.
func busy(t *testing.T, limits Limits, requests, size int) (l *limited, clients []client, release func()) {
	t.Helper()
	began, end := make(chan struct{}), make(chan struct{})
	l = newLimited(t, limits, func(_ http.ResponseWriter, req *http.Request) {
		began <- struct{}{}
		<-end
	})
	for range requests {
		clients = append(clients, l.send(post(size, size)))
		<-began
	}
	return l, clients, func() { close(end) }
}

func TestARequestThatHasArrivedIsAnswered(t *testing.T) {
	limits := patient()
	limits.Connections, limits.Answers, limits.Body = 3, 3, 64*chunkSize
	t.Run("although connections run out", func(t *testing.T) {
		l, clients, release := busy(t, limits, 3, 1)
		l.send(post(0, 0)).gets(0)
		release()
		for _, c := range clients {
			c.gets(http.StatusOK)
		}
	})
	t.Run("although bytes run out", func(t *testing.T) {
		l, clients, release := busy(t, limits, 1, 63*chunkSize)
		slow := l.send(post(limits.Body, chunkSize-1))
		l.eventually(2, 64)
		other := l.send(post(2*chunkSize, 2*chunkSize)).answer()
		if other == nil || other.StatusCode != http.StatusServiceUnavailable || other.Header.Get("Retry-After") != "1" {
			t.Errorf("the answer to another request is %+v", other)
		}
		slow.gets(http.StatusServiceUnavailable)
		release()
		clients[0].gets(http.StatusOK)
	})
}

func TestTheSlowestBodyLosesItsBytes(t *testing.T) {
	limits := patient()
	limits.Bodies = 8 * chunkSize
	l := newLimited(t, limits, echo)
	first := l.send(post(limits.Body, 4*chunkSize-1))
	l.eventually(1, 4)
	second := l.send(post(limits.Body, 4*chunkSize-1))
	l.eventually(2, 8)
	l.request(2 * chunkSize)
	if answer := first.answer(); answer == nil || answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") != "1" {
		t.Errorf("the answer to the first is %+v", answer)
	}
	l.eventually(1, 4)
	_, err := io.WriteString(second, strings.Repeat("x", limits.Body-4*chunkSize+1))
	require.NoError(t, err)
	second.gets(http.StatusOK)
}

func TestAClientThatReadsSlowlyKeepsNobodyWaiting(t *testing.T) {
	limits := patient()
	limits.Answers = 1
	large := bytes.Repeat([]byte("x"), 1<<20)
	l := newLimited(t, limits, func(w http.ResponseWriter, req *http.Request) {
		for req.ContentLength == 0 { // more than all buffers have room for
			if _, err := w.Write(large); err != nil {
				return
			}
		}
		echo(w, req)
	})
	l.send(post(0, 0)).gets(http.StatusOK)
	l.request(1)
}

// A decoded request can be many times as large.
func TestOneLargeRequestIsAnsweredAtATime(t *testing.T) {
	limits := patient()
	limits.Body = 2 * largeBody
	limits.Bodies = 10 * largeBody
	sizes, end := make(chan int64), make(chan struct{})
	l := newLimited(t, limits, func(_ http.ResponseWriter, req *http.Request) {
		sizes <- req.ContentLength
		<-end
	})
	var clients []client
	for range 2 {
		clients = append(clients, l.send(post(limits.Body, limits.Body)))
	}
	if size := <-sizes; size != int64(limits.Body) {
		t.Errorf("a request of %d bytes", size)
	}
	clients = append(clients, l.send(post(1, 1)))
	if size := <-sizes; size != 1 {
		t.Errorf("a second request of %d bytes is answered", size)
	}
	close(end)
	if size := <-sizes; size != int64(limits.Body) {
		t.Errorf("a request of %d bytes", size)
	}
	for _, c := range clients {
		c.gets(http.StatusOK)
	}
}

// deadlines is a connection that records its last deadline.
type deadlines struct {
	net.Conn
	last time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.last = at
	return nil
}

func TestTheTimeOfARequestDoesNotLimitItsAnswer(t *testing.T) {
	l := newLimiter(patient(), nil)
	conn := &deadlines{last: time.Now()}
	for _, body := range []io.Reader{nil, strings.NewReader("x")} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/", body)
		require.NoError(t, err)
		if _, err := l.receive(&connection{Conn: conn, limiter: l}, req); err != nil || !conn.last.IsZero() {
			t.Errorf("the deadline is %v, the error %v", conn.last, err)
		}
	}
}
