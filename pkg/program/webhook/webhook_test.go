package webhook

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"kube-queue.dev/kube-queue/pkg/program/selfsigned"
	"kube-queue.dev/kube-queue/test/require"
)

const (
	namespace = "kube-queue"
	service   = "hooks"
	mutating  = "hold"
)

// world is an API server with the objects of the chart, and a server with its keeper.
type world struct {
	t      *testing.T
	client *fake.Clientset
	clock  *clocktesting.FakeClock
	server *Server
	// order lists the writes.
	order chan write
	// expiry has the last recorded expiry of a certificate.
	expiry chan float64
}

// write is a write of the keeper and its time.
type write struct {
	step string
	at   time.Time
}

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newWorld(t *testing.T, objects ...runtime.Object) *world {
	t.Helper()
	w := &world{t: t, clock: clocktesting.NewFakeClock(start), order: make(chan write, 100), expiry: make(chan float64, 100)}
	if objects == nil {
		objects = []runtime.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: service}}, configurationOf("a", "b")}
	}
	w.client = fake.NewClientset(objects...)
	w.client.PrependReactor("patch", "*", func(action kubetesting.Action) (bool, runtime.Object, error) {
		step := "prepare"
		switch {
		case action.GetResource().Resource != "secrets":
			step = "trust"
		case strings.Contains(string(action.(kubetesting.PatchAction).GetPatch()), `"next.crt":null`):
			step = "promote"
		}
		w.order <- write{step, w.clock.Now()}
		return false, nil, nil
	})
	return w
}

func configurationOf(webhooks ...string) *admissionregistrationv1.MutatingWebhookConfiguration {
	c := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: mutating}}
	for _, name := range webhooks {
		c.Webhooks = append(c.Webhooks, admissionregistrationv1.MutatingWebhook{Name: name})
	}
	return c
}

// start starts the server.
func (w *world) start(ctx context.Context) {
	w.t.Helper()
	server, err := Start(ctx, Options{
		Settings: Settings{Address: "127.0.0.1:0", Manage: true}, Client: w.client, Namespace: namespace, Service: service,
		Mutating: []string{mutating}, Handler: http.NotFoundHandler(), Clock: w.clock,
		Expires: func(at float64) { w.expiry <- at },
	})
	require.NoError(w.t, err)
	w.server = server
}

// run starts the server and the keeper.
func (w *world) run() {
	w.t.Helper()
	w.start(w.t.Context())
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.server.Work(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
		_ = w.server.http.Close()
	})
}

func (w *world) secret() *corev1.Secret {
	w.t.Helper()
	secret, err := w.client.CoreV1().Secrets(namespace).Get(w.t.Context(), service, metav1.GetOptions{})
	require.NoError(w.t, err)
	return secret
}

// edit changes the Secret by hand.
func (w *world) edit(change func(data map[string][]byte) map[string][]byte) error {
	w.t.Helper()
	secret := w.secret()
	secret.Data = change(secret.Data)
	_, err := w.client.CoreV1().Secrets(namespace).Update(w.t.Context(), secret, metav1.UpdateOptions{})
	return err
}

// empty returns no data for a Secret.
func empty(map[string][]byte) map[string][]byte { return nil }

// served returns the serial number of the certificate that the server presents.
func (w *world) served() string {
	c, err := w.server.certificate.get(nil)
	if err != nil {
		return ""
	}
	return c.Leaf.SerialNumber.String()
}

// verifies checks that an API server that trusts caBundle of each webhook accepts the served
// certificate.
func (w *world) verifies() error {
	c, err := w.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(w.t.Context(), mutating, metav1.GetOptions{})
	if err != nil {
		return err
	}
	served, err := w.server.certificate.get(nil)
	if err != nil {
		return err
	}
	for _, hook := range c.Webhooks {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(hook.ClientConfig.CABundle) {
			return fmt.Errorf("webhook %s trusts nobody", hook.Name)
		}
		if _, err := served.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: service + "." + namespace + ".svc", CurrentTime: w.clock.Now()}); err != nil {
			return fmt.Errorf("webhook %s: %w", hook.Name, err)
		}
	}
	return nil
}

// writes returns the writes since the last call.
func (w *world) writes() []write {
	var all []write
	for {
		select {
		case one := <-w.order:
			all = append(all, one)
		default:
			return all
		}
	}
}

// steps returns the steps of the writes since the last call.
func (w *world) steps() []string {
	var all []string
	for _, one := range w.writes() {
		all = append(all, one.step)
	}
	return all
}

// passes moves the clock if the keeper waits for it.
func (w *world) passes(d time.Duration) {
	if w.clock.HasWaiters() {
		w.clock.Step(d)
	}
}

func TestTheFirstCertificateIsTrustedAndServedAtOnce(t *testing.T) {
	w := newWorld(t)
	w.run()
	require.Eventually(w.t, "the webhooks trust what is served", w.verifies)
	if got := w.steps(); !slices.Equal(got, []string{"prepare", "trust", "promote"}) {
		t.Errorf("the writes are %v", got)
	}
	if data := w.secret().Data; len(data) != 2 || len(data[certificateKey]) == 0 {
		t.Errorf("the Secret has %v", slices.Collect(keysOf(data)))
	}
	if at := <-w.expiry; at != float64(start.Add(selfsigned.ValidFor).Unix()) {
		t.Errorf("it expires at %v", at)
	}
	if why := w.server.NotReady(); why != "" {
		t.Errorf("not ready: %s", why)
	}
}

func keysOf(data map[string][]byte) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range data {
			if !yield(key) {
				return
			}
		}
	}
}

func TestACertificateIsReplacedBeforeItExpiresAndTrustedAtEveryMoment(t *testing.T) {
	w := newWorld(t)
	w.run()
	require.Eventually(w.t, "the first one is served", w.verifies)
	first := w.served()
	w.steps()
	w.clock.Step(selfsigned.ValidFor - selfsigned.RenewBefore + time.Minute)
	require.Eventually(w.t, "the next one is trusted", func() error {
		c := len(w.order)
		if c == 0 { // it may have read the clock before
			w.passes(recheck)
		}
		if c < 2 {
			return fmt.Errorf("%d writes", c)
		}
		return w.verifies()
	})
	if w.served() != first {
		t.Fatal("it is served before the API servers have had time to read that it is trusted")
	}
	require.Eventually(w.t, "the next one is served", func() error {
		w.passes(settle)
		if w.served() == first {
			return errors.New("the first one is")
		}
		return w.verifies()
	})
	switch got := w.writes(); {
	case len(got) != 3 || got[0].step != "prepare" || got[1].step != "trust" || got[2].step != "promote":
		t.Errorf("the writes are %v", got)
	case got[2].at.Sub(got[1].at) < settle:
		t.Errorf("it is served %v after it is trusted, want at least %v", got[2].at.Sub(got[1].at), settle)
	}
}

// Another leader continues a replacement: everything that it needs is in the objects.
func TestAnotherLeaderContinuesAReplacement(t *testing.T) {
	pair := func(at time.Time) selfsigned.Pair {
		made, err := selfsigned.Make([]string{service + "." + namespace + ".svc"}, at)
		require.NoError(t, err)
		return made
	}
	old, next := pair(start.Add(-340*24*time.Hour)), pair(start)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: service}, Data: map[string][]byte{
		certificateKey: old.Certificate, privateKey: old.Key, nextCertificateKey: next.Certificate, nextPrivateKey: next.Key}}
	configuration := configurationOf("a", "b")
	configuration.Webhooks[0].ClientConfig.CABundle = old.Certificate
	configuration.Webhooks[1].ClientConfig.CABundle = append(bytes.Clone(next.Certificate), old.Certificate...)
	w := newWorld(t, secret, configuration)
	w.run()
	require.Eventually(w.t, "all trust both", func() error {
		if len(w.order) < 1 {
			return errors.New("nothing was written")
		}
		return w.verifies()
	})
	require.Eventually(w.t, "the next one is served", func() error {
		w.passes(settle)
		if got := w.secret().Data[certificateKey]; !bytes.Equal(got, next.Certificate) {
			return errors.New("the old one is")
		}
		return w.verifies()
	})
	if got := w.steps(); !slices.Equal(got, []string{"trust", "promote"}) {
		t.Errorf("the writes are %v", got)
	}
}

func TestWhatSomebodyBreaksIsRepaired(t *testing.T) {
	other, err := selfsigned.Make([]string{"other"}, start)
	require.NoError(t, err)
	for name, harm := range map[string]func(w *world) error{
		"the Secret is emptied": func(w *world) error { return w.edit(empty) },
		"the key is of another certificate": func(w *world) error {
			return w.edit(func(data map[string][]byte) map[string][]byte {
				return map[string][]byte{certificateKey: data[certificateKey], privateKey: other.Key}
			})
		},
		"the certificate is for another name": func(w *world) error {
			return w.edit(func(map[string][]byte) map[string][]byte {
				return map[string][]byte{certificateKey: other.Certificate, privateKey: other.Key}
			})
		},
		"caBundle is removed": func(w *world) error {
			_, err := w.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Update(t.Context(), configurationOf("a", "b"), metav1.UpdateOptions{})
			return err
		},
		"a webhook is added": func(w *world) error {
			c, err := w.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), mutating, metav1.GetOptions{})
			if err != nil {
				return err
			}
			c.Webhooks = append(c.Webhooks, admissionregistrationv1.MutatingWebhook{Name: "c"})
			_, err = w.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Update(t.Context(), c, metav1.UpdateOptions{})
			return err
		},
		"the configuration is installed again": func(w *world) error {
			all := w.client.AdmissionregistrationV1().MutatingWebhookConfigurations()
			if err := all.Delete(t.Context(), mutating, metav1.DeleteOptions{}); err != nil {
				return err
			}
			_, err := all.Create(t.Context(), configurationOf("a"), metav1.CreateOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.run()
			require.Eventually(w.t, "the first one is served", w.verifies)
			w.steps()
			require.NoError(t, harm(w))
			require.Eventually(w.t, "it is trusted and served again", func() error {
				w.passes(settle)
				secret := w.secret()
				if _, err := (selfsigned.Pair{Certificate: secret.Data[certificateKey], Key: secret.Data[privateKey]}).Load(); err != nil {
					return err
				}
				return w.verifies()
			})
		})
	}
}

func TestBundlesHaveFewCertificates(t *testing.T) {
	w := newWorld(t)
	w.run()
	for i := range 6 {
		require.Eventually(w.t, "one is served", w.verifies)
		before := w.served()
		require.NoError(t, w.edit(empty))
		require.Eventually(w.t, fmt.Sprintf("number %d is replaced", i), func() error {
			w.passes(settle)
			if w.served() == before {
				return errors.New("not yet")
			}
			return nil
		})
	}
	c, err := w.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), mutating, metav1.GetOptions{})
	require.NoError(t, err)
	if got := len(parse(c.Webhooks[0].ClientConfig.CABundle, time.Time{})); got > trusted {
		t.Errorf("caBundle has %d certificates", got)
	}
}

func TestWithoutACertificateTheReplicaIsNotReady(t *testing.T) {
	w := newWorld(t, configurationOf("a"))
	w.run()
	require.Says(t, "NotReady", w.server.NotReady(), "kube-queue/hooks")
}

// A replica may be elected at the moment when its program stops.
func TestAReplicaThatStopsWorksWithoutError(t *testing.T) {
	w := newWorld(t)
	ctx, stop := context.WithCancel(t.Context())
	w.start(ctx)
	w.server.Stop(ctx)
	stop()
	for range 100 { // the informers may end before or after the keeper begins
		require.NoError(t, w.server.Work(ctx))
	}
}

// API servers may send requests until the Service no longer leads to the replica.
func TestAReplicaThatStopsServesOnForAMoment(t *testing.T) {
	w := newWorld(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	w.start(ctx)
	stop()
	if why := w.server.NotReady(); why != "the program stops" {
		t.Errorf("NotReady is %q", why)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		w.server.Stop(ctx)
	}()
	require.Eventually(w.t, "it drains", func() error {
		if !w.clock.HasWaiters() {
			return errors.New("it does not")
		}
		return nil
	})
	w.clock.Step(drain - time.Millisecond)
	select {
	case <-stopped:
		t.Fatal("it stops too early")
	default:
	}
	w.clock.Step(time.Millisecond)
	select {
	case <-stopped:
	case <-time.After(10 * time.Second):
		t.Fatal("it does not stop")
	}
}

// review is what the API server sends.
func review(t *testing.T, handler http.Handler, body string) (status int, answer string) {
	t.Helper()
	recorded := httptest.NewRecorder()
	handler.ServeHTTP(recorded, httptest.NewRequest(http.MethodPost, "/x", strings.NewReader(body)))
	text, err := io.ReadAll(recorded.Body)
	require.NoError(t, err)
	return recorded.Code, string(text)
}

func TestAReviewIsAnswered(t *testing.T) {
	const asked = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u1","kind":{"group":"batch","version":"v1","kind":"Job"},"namespace":"a","name":"b"}}`
	withObject := func(object string) string {
		return strings.Replace(asked, `"name":"b"`, `"name":"b","object":`+object, 1)
	}
	for name, test := range map[string]struct {
		answer Answer
		err    error
		body   string
		status int
		result string
		says   []string
	}{
		"a patch":          {Answer{Patch: []string{"x"}}, nil, asked, 200, ResultPatched, []string{`"uid":"u1"`, `"allowed":true`, `"patchType":"JSONPatch"`}},
		"nothing":          {Answer{}, nil, asked, 200, ResultUnchanged, []string{`"uid":"u1"`, `"allowed":true`}},
		"a refusal":        {Answer{Refused: "it is wrong"}, nil, asked, 200, ResultRefused, []string{`"allowed":false`, "it is wrong", `"code":403`}},
		"a missing object": {Answer{Refused: "no x", Missing: true}, nil, asked, 200, ResultRefused, []string{`"code":403`, `"causes":[{"reason":"FieldValueNotFound"}]`}},
		"a warning":        {Answer{Warnings: []string{"mind"}}, nil, asked, 200, ResultUnchanged, []string{`"warnings":["mind"]`}},
		"an error":         {Answer{}, errors.New("cannot"), asked, 400, ResultError, []string{"Job a/b: cannot"}},
		"no review":        {Answer{}, nil, `{`, 400, ResultError, []string{"AdmissionReview"}},
		"no request":       {Answer{}, nil, `{}`, 400, ResultError, []string{"no request"}},
		"too many values":  {Answer{}, nil, withObject(`[` + strings.Repeat("0,", mostValues) + `0]`), 400, ResultError, []string{"Job a/b: it has more than 250000 values"}},
		"many values":      {Answer{}, nil, withObject(`[` + strings.Repeat("0,", mostValues-1) + `0]`), 200, ResultUnchanged, []string{`"allowed":true`}},
		"a text with many": {Answer{}, nil, withObject(`["\\\"` + strings.Repeat("[,{", mostValues) + `"]`), 200, ResultUnchanged, []string{`"allowed":true`}},
	} {
		t.Run(name, func(t *testing.T) {
			var result string
			handler := Handler(func(context.Context, *admissionv1.AdmissionRequest) (Answer, error) { return test.answer, test.err },
				clocktesting.NewFakePassiveClock(start), func(got string, _ time.Duration) { result = got })
			status, body := review(t, handler, test.body)
			if status != test.status || result != test.result {
				t.Errorf("status %d, result %s: %s", status, result, body)
			}
			require.Says(t, "the answer", body, test.says...)
			if test.status == 200 {
				var answered admissionv1.AdmissionReview
				if err := json.Unmarshal([]byte(body), &answered); err != nil || answered.Kind != "AdmissionReview" {
					t.Errorf("the answer is %v, %v", answered, err)
				}
			}
		})
	}
}
