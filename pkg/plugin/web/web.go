// Package web serves the pages of "kubectl kube-queue web" and of kube-queue-web: which jobs wait, why, and how the
// quotas are used.
//
// A page is a thin layer over the answers of a Reader, which reads the cluster with the rights of the caller. The
// package stores nothing, decides nothing, and has no client of the cluster.
//
// Only the user who started the command can open its pages: the link works once, and gives the browser a cookie. In
// the cluster, each request carries the bearer token of its caller and is answered with the rights of that token
// alone. Text from the cluster is untrusted, so templates escape it, and the Content-Security-Policy permits no inline
// scripts or styles.
package web

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	visibility "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/plugin/objects"
)

// Reader reads the cluster with the rights of the caller, for one page.
type Reader interface {
	// Units returns the units that spec selects, in a namespace or in all namespaces.
	Units(ctx context.Context, namespace string, spec visibility.QueueReviewSpec) (*visibility.QueueReviewStatus, error)
	// Job returns a unit and why it waits.
	Job(ctx context.Context, namespace, unit string) (*Job, error)
	// Quotas returns all quotas that the caller may see with the permissions in a namespace.
	Quotas(ctx context.Context, namespace string) (*visibility.QuotaReviewStatus, error)
	// Tree returns the manifest of the quota tree in use.
	Tree(ctx context.Context) (string, error)
	// Simulate returns what would happen with the manifests. Objects without a namespace get the given one.
	Simulate(ctx context.Context, namespace, manifests string) (*objects.Simulation, error)
	// May reports whether the caller may carry out an action. Act carries it out and returns what was done.
	May(ctx context.Context, a Action) bool
	Act(ctx context.Context, a Action) (said string, err error)
	// Warnings returns the warnings about the answers.
	Warnings() []string
}

// Job is a unit and why it waits.
type Job struct {
	Unit   *v1alpha1.QueueUnit
	Status *visibility.QueueUnitReviewStatus
}

// Options of a Server.
type Options struct {
	// Open returns a Reader for a page. With ByToken, token is the caller's token; otherwise it is empty.
	Open func(token string) (Reader, error)
	// ByToken says whether each request needs a bearer token. A proxy adds it, and there is no link to open.
	ByToken bool
	// Namespace is the namespace of the caller, and Cluster the name of the context.
	Namespace, Cluster string
	// Hosts are the addresses of the server, as browsers write them. Requests for other hosts are refused, because an
	// attacker's host name could resolve to this server.
	Hosts []string
	// Refresh is how often an open page is read again. After MostAge, it must reconnect; 0 for never.
	Refresh, MostAge time.Duration
	Now              func() time.Time
}

// Server serves the pages.
type Server struct {
	Options
	handler http.Handler
	// session is the value of the cookie.
	session string
	// simulations and streams count what is running. A simulation reads all units.
	simulations, streams turns
	// reads has an entry for each page that is being read.
	reads chan struct{}
	// ended is closed when the streams must end.
	ended chan struct{}

	mu sync.Mutex
	// ticket is the secret in the link that opens the pages; empty once it is used.
	ticket string
}

//go:embed assets
var assets embed.FS

const (
	// MostForm is the maximum size of a form, in bytes. An object in Kubernetes has at most 1.5 MiB.
	MostForm = 3 << 19
	// mostHeader is the maximum size of a header, in bytes.
	mostHeader = 64 << 10
	// readTime and answerTime are the timeouts for reading a request and for answering it.
	readTime, answerTime = 10 * time.Second, time.Minute
	// ownSimulations and ownStreams are the limits for one caller. allSimulations and allStreams are the limits for all.
	ownSimulations, allSimulations = 1, 2
	ownStreams, allStreams         = 20, 400
	// allReads is the maximum number of pages that are read at the same time. Each can hold thousands of units.
	allReads = 16
)

// New returns a server of the pages.
func New(o Options) *Server {
	s := &Server{Options: o, session: rand.Text(), ticket: rand.Text(), ended: make(chan struct{}), reads: make(chan struct{}, allReads)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", s.page)
	mux.HandleFunc("POST /what-if", s.page)
	mux.HandleFunc("POST /act", s.page)
	mux.HandleFunc("GET /live", s.live)
	mux.Handle("GET /assets/", http.FileServerFS(assets))
	s.handler = http.NewCrossOriginProtection().Handler(mux)
	return s
}

// Link returns the address that opens a page. It works once.
func (s *Server) Link(page string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "http://" + s.Hosts[0] + "/open?" + url.Values{"ticket": {s.ticket}, "page": {page}}.Encode()
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
	} {
		w.Header().Set(name, value)
	}
	token := bearer(r)
	switch {
	case s.ByToken && token == "":
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "a bearer token of the cluster is required", http.StatusUnauthorized)
	case !slices.ContainsFunc(s.Hosts, func(host string) bool { return strings.EqualFold(host, r.Host) }):
		http.Error(w, "these pages are only at "+strings.Join(s.Hosts, ", "), http.StatusMisdirectedRequest)
	case s.ByToken:
		s.answer(w, r.WithContext(context.WithValue(r.Context(), tokenKey{}, token)))
	case r.URL.Path == "/open":
		s.open(w, r)
	case !s.isOwn(r):
		http.Error(w, "these pages are only for the user who started kubectl kube-queue web: open the link that the command has printed", http.StatusForbidden)
	default:
		s.answer(w, r)
	}
}

// answer answers a request of a known caller.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, MostForm)
	s.handler.ServeHTTP(w, r)
}

// cookie returns the name of the cookie. It has the port because browsers share cookies between ports.
func (s *Server) cookie() string {
	_, port, _ := net.SplitHostPort(s.Hosts[0])
	return "kube-queue-" + port
}

// isOwn reports whether the request has the cookie.
func (s *Server) isOwn(r *http.Request) bool {
	cookie, err := r.Cookie(s.cookie())
	return err == nil && subtle.ConstantTimeCompare([]byte(cookie.Value), []byte(s.session)) == 1
}

// open exchanges the ticket for the cookie. Each ticket is for one browser.
func (s *Server) open(w http.ResponseWriter, r *http.Request) {
	if given := r.URL.Query().Get("ticket"); !s.isOwn(r) && !s.use(given) {
		http.Error(w, "this link was used before: start kubectl kube-queue web again", http.StatusForbidden)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: s.cookie(), Value: s.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, local(r.URL.Query().Get("page")), http.StatusSeeOther)
}

// use reports whether the ticket is valid, and invalidates it.
func (s *Server) use(ticket string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ticket == "" || subtle.ConstantTimeCompare([]byte(ticket), []byte(s.ticket)) != 1 {
		return false
	}
	s.ticket = ""
	return true
}

// local returns the path and query of the page, so that it cannot lead to another host.
func local(page string) string {
	u, err := url.Parse(page)
	if err != nil {
		return "/"
	}
	return (&url.URL{Path: "/", RawQuery: u.RawQuery}).JoinPath(u.Path).String()
}

// Serve answers requests until the context ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{Handler: s, MaxHeaderBytes: mostHeader, ReadTimeout: readTime, WriteTimeout: answerTime, IdleTimeout: answerTime,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
