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
	// heartbeat is how often an event stream writes something, so that a connection that has died is noticed.
	heartbeat = 15 * time.Second
	// mostAnswering bounds how long reading a page and each write of a stream take.
	mostAnswering = 20 * time.Second
)

// live streams the content of a page whenever it changes.
func (s *Server) live(w http.ResponseWriter, r *http.Request) {
	page, err := http.NewRequestWithContext(r.Context(), http.MethodGet, local(r.URL.Query().Get("page")), nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	stream := http.NewResponseController(w)
	send := func(event string) error {
		if err := stream.SetWriteDeadline(time.Now().Add(mostAnswering)); err != nil {
			return err
		}
		if _, err := fmt.Fprint(w, event); err != nil {
			return err
		}
		return stream.Flush()
	}
	ticker := time.NewTicker(s.Refresh)
	defer ticker.Stop()
	var last string
	var sent time.Time
	for {
		content := s.content(page)
		now := s.Now()
		switch {
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
		case <-ticker.C:
		}
	}
}

// content returns what changes of a page.
func (s *Server) content(r *http.Request) string {
	ctx, cancel := context.WithTimeout(r.Context(), mostAnswering)
	defer cancel()
	var out bytes.Buffer
	v, _ := s.view(r.WithContext(ctx))
	if err := templates[v.Template].ExecuteTemplate(&out, "live", v); err != nil {
		return err.Error()
	}
	return strings.ReplaceAll(out.String(), "\r", "")
}
