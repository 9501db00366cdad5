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

// listen serves the supervisor's requests: JSON over HTTP over a unix socket. close waits for the last
// response.
func (s *Supervisor) listen() (close func(), err error) {
	type nothing = struct{}
	mux := http.NewServeMux()
	handle(mux, "/stop", func(*http.Request, nothing) (nothing, error) {
		s.stop(errStop)
		return nothing{}, nil
	})
	handle(mux, "/programs", func(r *http.Request, program Program) (nothing, error) {
		return nothing{}, s.startProgram(r.Context(), program)
	})
	handle(mux, "/programs/{name}/stop", func(r *http.Request, _ nothing) (nothing, error) {
		return nothing{}, s.stopProgram(r.PathValue("name"))
	})
	handle(mux, "/routes", func(_ *http.Request, routes Routes) (nothing, error) {
		s.routes.merge(routes)
		return nothing{}, nil
	})
	handle(mux, "/upgrade", func(_ *http.Request, to Version) (nothing, error) { return nothing{}, s.upgrade(to) })
	handle(mux, "/apiserver", func(_ *http.Request, version Version) (string, error) { return s.startSecond(version) })
	handle(mux, "/apiserver/stop", func(*http.Request, nothing) (nothing, error) { return nothing{}, s.stopSecond() })
	server, err := serveSocket(s.folder.socket(), mux)
	if err != nil {
		return nil, err
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeDeadline)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			server.Close()
		}
		os.Remove(s.folder.socket())
	}, nil
}

// closeDeadline is the timeout for the last response.
const closeDeadline = time.Second

// serveSocket opens a socket. The caller holds the folder's lock, so an existing socket is a leftover.
func serveSocket(path string, handler http.Handler) (*http.Server, error) {
	if err := os.RemoveAll(path); err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(listener)
	return server, nil
}

type failureAnswer struct{ Error string }

// handle answers requests at a path.
func handle[In, Out any](mux *http.ServeMux, path string, answer func(*http.Request, In) (Out, error)) {
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		var in In
		var value any
		err := json.NewDecoder(r.Body).Decode(&in)
		if err == nil {
			value, err = answer(r, in)
		}
		w.Header().Set("Content-Type", "application/json")
		if err != nil {
			w.WriteHeader(http.StatusConflict)
			value = failureAnswer{err.Error()}
		}
		// An error means that the client has closed the connection.
		_ = json.NewEncoder(w).Encode(value)
	})
}
