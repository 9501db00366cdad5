package web

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

const (
	// heartbeat is how often an event stream writes something, to detect dead connections.
	heartbeat = 15 * time.Second
	// calm is the minimum ratio of the wait of a stream, or of the browser before its stream, to the time that it took to
	// read the page, so that many open pages do not overload the cluster.
	calm = 20
	// mostAnswering is the timeout for reading a page and for each write of a stream.
	mostAnswering = 20 * time.Second
)

// EndStreams ends all current and future streams, before the server stops.
func (s *Server) EndStreams() { close(s.ended) }

// live streams the content of a page whenever it changes, until the API server no longer accepts the token.
func (s *Server) live(w http.ResponseWriter, r *http.Request) {
	page, err := http.NewRequestWithContext(r.Context(), http.MethodGet, local(r.URL.Query().Get("page")), nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if p := strings.Trim(page.URL.Path, "/"); p == "act" || p == "what-if" {
		http.Error(w, "this page does not change", http.StatusNotFound)
		return
	}
	caller := callerOf(r.Context())
	if !s.streams.begin(caller, ownStreams, allStreams) {
		http.Error(w, "too many pages are open", http.StatusTooManyRequests)
		return
	}
	defer s.streams.end(caller)
	var old <-chan time.Time
	if s.MostAge > 0 {
		old = time.After(s.MostAge)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	stream := http.NewResponseController(w)
	_ = stream.SetReadDeadline(time.Time{}) // a deadline would end the stream
	send := func(event string) error {
		if err := stream.SetWriteDeadline(time.Now().Add(mostAnswering)); err != nil {
			return err
		}
		if _, err := fmt.Fprint(w, event); err != nil {
			return err
		}
		return stream.Flush()
	}
	var last string
	var sent time.Time
	for {
		began := time.Now()
		content, code := s.content(page)
		rest := s.rest(began)
		now := s.Now()
		switch {
		case s.ByToken && code == http.StatusUnauthorized && last == "":
			http.Error(w, "the API server does not accept the token", code)
			return
		case s.ByToken && code == http.StatusUnauthorized:
			return
		case s.ByToken && code != http.StatusOK: // the API server may not have accepted the token
			_ = send("data: " + strings.ReplaceAll(content, "\n", "\ndata: ") + "\n\n")
			return
		case content != last:
			err = send("data: " + strings.ReplaceAll(content, "\n", "\ndata: ") + "\n\n")
			last, sent = content, now
		case now.Sub(sent) >= heartbeat:
			err = send(": nothing has changed\n\n")
			sent = now
		}
		if err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-old:
			return
		case <-s.ended:
			return
		case <-time.After(rest):
		}
	}
}

// rest returns how long to wait after a page has been read, until it is read again. The reading began at the given time.
func (s *Server) rest(began time.Time) time.Duration {
	return min(max(s.Refresh, calm*time.Since(began)), heartbeat)
}

// content returns the live part of a page, and the status of the page.
func (s *Server) content(r *http.Request) (content string, code int) {
	ctx, cancel := context.WithTimeout(r.Context(), mostAnswering)
	defer cancel()
	var out bytes.Buffer
	v, code := s.view(r.WithContext(ctx))
	if err := templates[v.Template].ExecuteTemplate(&out, "live", v); err != nil {
		return err.Error(), http.StatusInternalServerError
	}
	return strings.ReplaceAll(out.String(), "\r", ""), code
}
