package web

import (
	"context"
	"net/http"
	"strings"
	"sync"
)

// tokenKey is the key of the token in the context of a request.
type tokenKey struct{}

// callerOf returns the token of the caller; empty if the server needs none.
func callerOf(ctx context.Context) string {
	token, _ := ctx.Value(tokenKey{}).(string)
	return token
}

// bearer returns the bearer token of a request; empty if it has none, or more than one.
func bearer(r *http.Request) string {
	given := r.Header.Values("Authorization")
	if len(given) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(given[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// turns counts what runs at the same time, by caller.
type turns struct {
	mu  sync.Mutex
	of  map[string]int
	all int
}

// begin starts a turn. It returns false if the caller already has own turns, or all callers together have all.
func (t *turns) begin(caller string, own, all int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of[caller] >= own || t.all >= all {
		return false
	}
	if t.of == nil {
		t.of = map[string]int{}
	}
	t.of[caller]++
	t.all++
	return true
}

func (t *turns) end(caller string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all--
	if t.of[caller]--; t.of[caller] == 0 {
		delete(t.of, caller)
	}
}
