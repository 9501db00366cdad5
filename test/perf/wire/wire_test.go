package wire

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
)

// client returns a client of a fake API server.
func client(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	c, err := New(&rest.Config{Host: s.URL, BearerToken: "secret"}, "tool/v1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestRequestIsSentUnchanged(t *testing.T) {
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusCreated)
		if err := json.NewEncoder(w).Encode(fmt.Sprint(r.Method, " ", r.URL, " ", string(body), " ", r.Header.Get("User-Agent"), " ",
			r.Header.Get("Accept"), " ", r.Header.Get("Content-Type"), " ", r.Header.Get("Authorization"))); err != nil {
			t.Error(err)
		}
	})
	var got string
	request := Request{Method: http.MethodPost, Path: "/apis/x", Query: "a=b%3D1", Header: c.Header("to/read", "to/send"), Body: []byte("body")}
	if err := c.Do(t.Context(), request, &got); err != nil {
		t.Fatal(err)
	}
	if want := "POST /apis/x?a=b%3D1 body tool/v1 to/read to/send Bearer secret"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := c.Do(t.Context(), request, nil); err != nil {
		t.Error(err)
	}
}

func TestRefusedContainsTheMessageOfTheServer(t *testing.T) {
	for _, test := range []struct {
		code              int
		body, want        string
		conflict, passing bool
	}{
		{409, `{"kind":"Status","message":"changed meanwhile"}`, "the API server answers 409: changed meanwhile", true, false},
		{403, "not you", "the API server answers 403: not you", false, false},
		{429, "", "the API server answers 429: ", false, true},
		{503, "{}", "the API server answers 503: {}", false, true},
	} {
		c := client(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(test.code)
			fmt.Fprint(w, test.body)
		})
		err := c.Do(t.Context(), Request{Method: http.MethodGet, Path: "/x"}, nil)
		if err == nil || err.Error() != "GET /x: "+test.want || Conflict(err) != test.conflict || Passing(err) != test.passing {
			t.Errorf("got %v, conflict %t, passing %t", err, Conflict(err), Passing(err))
		}
	}
}
