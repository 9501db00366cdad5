package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// control is the supervisor's server: JSON over HTTP over a unix socket.
type control struct {
	server *http.Server
	socket string
}

// listen opens the control socket. The caller holds the folder's lock, so an existing socket is a
// leftover.
func (s *Supervisor) listen() (*control, error) {
	socket := s.folder.socket()
	if err := os.RemoveAll(socket); err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		answer(w, s.status(), nil)
	})
	mux.HandleFunc("POST /stop", func(w http.ResponseWriter, r *http.Request) {
		s.stop(errStop)
		answer(w, struct{}{}, nil)
	})
	mux.HandleFunc("POST /programs", func(w http.ResponseWriter, r *http.Request) {
		var program Program
		if err := json.NewDecoder(r.Body).Decode(&program); err != nil {
			answer(w, nil, err)
			return
		}
		answer(w, struct{}{}, s.startProgram(r.Context(), program))
	})
	mux.HandleFunc("POST /programs/{name}/stop", func(w http.ResponseWriter, r *http.Request) {
		answer(w, struct{}{}, s.stopProgram(r.PathValue("name"), false))
	})
	mux.HandleFunc("POST /programs/{name}/kill", func(w http.ResponseWriter, r *http.Request) {
		answer(w, struct{}{}, s.stopProgram(r.PathValue("name"), true))
	})
	mux.HandleFunc("GET /routes", func(w http.ResponseWriter, r *http.Request) {
		answer(w, s.routes.all(), nil)
	})
	mux.HandleFunc("POST /routes", func(w http.ResponseWriter, r *http.Request) {
		var routes Routes
		if err := json.NewDecoder(r.Body).Decode(&routes); err != nil {
			answer(w, nil, err)
			return
		}
		answer(w, struct{}{}, s.routes.merge(routes))
	})
	mux.HandleFunc("POST /upgrade", func(w http.ResponseWriter, r *http.Request) {
		var to Version
		if err := json.NewDecoder(r.Body).Decode(&to); err != nil {
			answer(w, nil, err)
			return
		}
		answer(w, struct{}{}, s.upgrade(to))
	})
	mux.HandleFunc("POST /apiserver", func(w http.ResponseWriter, r *http.Request) {
		var version Version
		if err := json.NewDecoder(r.Body).Decode(&version); err != nil {
			answer(w, nil, err)
			return
		}
		second, err := s.startSecond(version)
		answer(w, second, err)
	})
	mux.HandleFunc("POST /apiserver/stop", func(w http.ResponseWriter, r *http.Request) {
		answer(w, struct{}{}, s.stopSecond())
	})
	c := &control{server: &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}, socket: socket}
	go c.server.Serve(listener)
	return c, nil
}

// closeDeadline is the timeout for the last response.
const closeDeadline = time.Second

func (c *control) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeDeadline)
	defer cancel()
	if c.server.Shutdown(ctx) != nil {
		c.server.Close()
	}
	os.Remove(c.socket)
}

type failureAnswer struct{ Error string }

func answer(w http.ResponseWriter, value any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusConflict)
		value = failureAnswer{err.Error()}
	}
	// An error means that the client has closed the connection.
	_ = json.NewEncoder(w).Encode(value)
}
