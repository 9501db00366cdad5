package e2e

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"kube-queue.dev/kube-queue/test/lab"
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

// executioner stands between a program and the API server, and kills the program
// at its writes. The program itself knows nothing of it.
type executioner struct {
	victim *lab.Program
	moment moment
	proxy  *httputil.ReverseProxy

	mu     sync.Mutex
	lives  int
	writes int
	dead   bool
	kills  int
	off    bool // no more kills
}

// execute has the program killed at its writes from now on.
func execute(t testing.TB, victim *lab.Program, when moment) *executioner {
	t.Helper()
	config := rest.AnonymousClientConfig(site.Config())
	transport, err := rest.TransportFor(config)
	lab.Must(t, err)
	target, err := url.Parse(config.Host)
	lab.Must(t, err)
	e := &executioner{victim: victim, moment: when, dead: true}
	e.proxy = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = target.Host },
		Transport:     transport,
		FlushInterval: -1,
	}
	// By TLS, for client-go sends no token without it.
	server := httptest.NewUnstartedServer(e)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // connections are cut on purpose
	server.StartTLS()
	t.Cleanup(func() { // in this order: a server does not close while watches are open
		victim.Stop()
		server.Close()
	})
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	direct, err := clientcmd.LoadFromFile(victim.Kubeconfig)
	lab.Must(t, err)
	for _, c := range direct.Clusters {
		*c = clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: certificate}
	}
	victim.Kubeconfig += ".proxied"
	lab.Must(t, clientcmd.WriteToFile(*direct, victim.Kubeconfig))
	return e
}

func (e *executioner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		e.proxy.ServeHTTP(w, r)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dead { // a write that was under way when the program was killed
		panic(http.ErrAbortHandler)
	}
	e.writes++
	switch {
	case e.off:
		e.proxy.ServeHTTP(w, r)
	case e.moment == beforeEach && (e.lives == 1 || e.writes == 2):
		e.strike()
	case e.moment == afterEach:
		landed := httptest.NewRecorder()
		e.proxy.ServeHTTP(landed, r)
		if _, err := io.Copy(io.Discard, landed.Result().Body); err != nil {
			panic(http.ErrAbortHandler)
		}
		e.strike()
	default:
		e.proxy.ServeHTTP(w, r)
	}
}

// strike kills the program and cuts the connection.
func (e *executioner) strike() {
	e.dead = true
	e.kills++
	_ = e.victim.Strike()
	panic(http.ErrAbortHandler)
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
		lab.EventuallyQuiet(t, func() bool {
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
