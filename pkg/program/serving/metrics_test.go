package serving

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"kube-queue.dev/kube-queue/pkg/metrics"
	"kube-queue.dev/kube-queue/pkg/program/selfsigned"
	"kube-queue.dev/kube-queue/test/require"
)

// reviews is a fake API server that decides who may read metrics.
type reviews struct {
	asked  int
	broken bool
}

func (r *reviews) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.asked++
	w.Header().Set("Content-Type", "application/json")
	var answer any
	switch {
	case r.broken:
		http.Error(w, "{}", http.StatusInternalServerError)
		return
	case strings.HasSuffix(req.URL.Path, "/tokenreviews"):
		review := &authenticationv1.TokenReview{}
		_ = json.NewDecoder(req.Body).Decode(review)
		switch review.Spec.Token {
		case "reader", "other":
			review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{
				Username: review.Spec.Token, Groups: []string{"g"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}}}}
		}
		answer = review
	case strings.HasSuffix(req.URL.Path, "/subjectaccessreviews"):
		review := &authorizationv1.SubjectAccessReview{}
		_ = json.NewDecoder(req.Body).Decode(review)
		spec := review.Spec
		asks := spec.NonResourceAttributes
		review.Status.Allowed = spec.User == "reader" && len(spec.Groups) == 1 && spec.Extra["k"][0] == "v" &&
			asks != nil && asks.Path == "/metrics" && asks.Verb == "get"
		answer = review
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func reviewing(t *testing.T) (*reviews, *reviewer, *clocktesting.FakePassiveClock) {
	t.Helper()
	server := &reviews{}
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: web.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	require.NoError(t, err)
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	return server, newReviewer(client.AuthenticationV1().TokenReviews(), client.AuthorizationV1().SubjectAccessReviews(), clock), clock
}

func TestOnlyWhoMayIsLetThrough(t *testing.T) {
	server, r, clock := reviewing(t)
	guarded := r.guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	status := func(authorization, path string) int {
		req := httptest.NewRequest(http.MethodGet, path, nil)
		if authorization != "" {
			req.Header.Set("Authorization", authorization)
		}
		w := httptest.NewRecorder()
		guarded.ServeHTTP(w, req)
		return w.Code
	}
	for _, c := range []struct {
		authorization, path string
		want, asked         int
	}{
		{"", "/metrics", http.StatusUnauthorized, 0},
		{"Basic cmVhZGVy", "/metrics", http.StatusUnauthorized, 0},
		{"Bearer ", "/metrics", http.StatusUnauthorized, 0},
		{"Bearer nobody", "/metrics", http.StatusUnauthorized, 1},
		{"Bearer other", "/metrics", http.StatusForbidden, 2},
		{"Bearer reader", "/other", http.StatusForbidden, 2},
		{"bearer reader", "/metrics", http.StatusOK, 2},
		{"Bearer reader", "/metrics", http.StatusOK, 0}, // cached
		{"Bearer other", "/metrics", http.StatusForbidden, 0},
	} {
		server.asked = 0
		if got := status(c.authorization, c.path); got != c.want || server.asked != c.asked {
			t.Errorf("%q at %s: status %d after %d questions, want %d after %d", c.authorization, c.path, got, server.asked, c.want, c.asked)
		}
	}

	clock.SetTime(clock.Now().Add(refusedFor + time.Second)) // a right that was granted in the meantime counts soon
	server.asked = 0
	if status("Bearer other", "/metrics"); server.asked != 2 {
		t.Errorf("a refusal is kept for longer than %v", refusedFor)
	}
	clock.SetTime(clock.Now().Add(allowedFor))
	server.broken = true
	if got := status("Bearer reader", "/metrics"); got != http.StatusServiceUnavailable {
		t.Errorf("without an answer the status is %d", got)
	}
	server.broken = false
	if got := status("Bearer reader", "/metrics"); got != http.StatusOK {
		t.Errorf("that there was no answer is kept: status %d", got)
	}
}

// serving serves a program's metrics with the options.
func serving(t *testing.T, o metricsOptions) (address string, err error) {
	t.Helper()
	web := httptest.NewServer(&reviews{})
	t.Cleanup(web.Close)
	o.address = freeAddress(t)
	of := Metrics{Name: "thing", Namespace: "ns", Registry: metrics.New("thing", "v1"),
		Config: &rest.Config{Host: web.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}}
	stop, err := of.serve(t.Context(), o)
	if err == nil {
		t.Cleanup(stop)
	}
	return o.address, err
}

// get scrapes, and returns the certificate that the server presented.
func get(t *testing.T, url, token string) (status int, body string, shown *x509.Certificate) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	if resp.TLS != nil {
		shown = resp.TLS.PeerCertificates[0]
	}
	return resp.StatusCode, string(text), shown
}

func TestMetricsAreServedByHTTPSToWhoMay(t *testing.T) {
	address, err := serving(t, defaultMetricsOptions())
	require.NoError(t, err)
	status, body, certificate := get(t, "https://"+address+"/metrics", "reader")
	for _, want := range []string{"kube_queue_build_info{", "go_goroutines ", "process_start_time_seconds "} {
		if status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("status %d, and no %s", status, want)
		}
	}
	require.NoError(t, certificate.VerifyHostname("thing.ns.svc"))
	if status, body, _ := get(t, "https://"+address+"/metrics", "other"); status != http.StatusForbidden || strings.Contains(body, "kube_queue") {
		t.Errorf("another is answered %d, %s", status, body)
	}
}

func TestMetricsAreServedToAnybodyWhereThatIsRequested(t *testing.T) {
	address, err := serving(t, metricsOptions{})
	require.NoError(t, err)
	if status, body, _ := get(t, "http://"+address+"/metrics", ""); status != http.StatusOK || !strings.Contains(body, "kube_queue_build_info{") {
		t.Errorf("status %d, %s", status, body)
	}
	if status, _, _ := get(t, "http://"+address+"/", ""); status != http.StatusNotFound {
		t.Errorf("another path is answered %d", status)
	}
}

// writeCertificate writes a certificate for the name, and its key.
func writeCertificate(t *testing.T, o metricsOptions, name string) {
	t.Helper()
	made, err := selfsigned.Make([]string{name}, time.Now())
	require.NoError(t, err)
	for file, text := range map[string][]byte{o.certFile: made.Certificate, o.keyFile: made.Key} {
		require.NoError(t, os.WriteFile(file, text, 0o600))
	}
}

func TestACertificateThatChangesIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	o := metricsOptions{secure: true, certFile: filepath.Join(dir, "crt"), keyFile: filepath.Join(dir, "key")}
	_, err := serving(t, o)
	require.ErrorSays(t, err, o.certFile)
	writeCertificate(t, o, "first")
	address, err := serving(t, o)
	require.NoError(t, err)
	expect := func(want string) {
		t.Helper()
		if _, _, shown := get(t, "https://"+address+"/metrics", ""); shown.Subject.CommonName != want {
			t.Errorf("the certificate is that of %s, want %s", shown.Subject.CommonName, want)
		}
	}
	expect("first")
	writeCertificate(t, o, "second-one")
	// Files that are written within one tick of the file system's clock differ in size.
	expect("second-one")
	require.NoError(t, os.WriteFile(o.keyFile, []byte("half of it"), 0o600))
	expect("second-one") // until the files match
}

func TestACertificateThatIsMadeIsMadeAgainBeforeItEnds(t *testing.T) {
	now := time.Now()
	s := &selfSigned{names: []string{"thing"}, now: func() time.Time { return now }}
	serial := func() string {
		t.Helper()
		certificate, err := s.get(nil)
		require.NoError(t, err)
		read := certificate.Leaf
		if now.After(read.NotAfter) || now.Before(read.NotBefore) {
			t.Errorf("at %v it is valid from %v to %v", now, read.NotBefore, read.NotAfter)
		}
		return read.SerialNumber.String()
	}
	first := serial()
	now = now.Add(selfsigned.ValidFor - selfsigned.RenewBefore - time.Minute)
	if serial() != first {
		t.Error("it is made again too early")
	}
	now = now.Add(time.Hour)
	if serial() == first {
		t.Error("it is not made again")
	}
}
