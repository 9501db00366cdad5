package reviews

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"kube-queue.dev/kube-queue/pkg/visibility"
	"kube-queue.dev/kube-queue/test/require"
)

// vault is an API server with the Secret, and the Proof that keeps it.
type vault struct {
	t      *testing.T
	client *fake.Clientset
	clock  *clocktesting.FakeClock
	proof  *Proof
	// failures has one value for each of the next writes, which fail.
	failures chan struct{}
}

func newVault(t *testing.T, objects ...runtime.Object) *vault {
	t.Helper()
	v := &vault{t: t, clock: clocktesting.NewFakeClock(time.Unix(1000, 0)), client: fake.NewClientset(objects...), failures: make(chan struct{}, 1)}
	v.client.PrependReactor("patch", "secrets", func(kubetesting.Action) (bool, runtime.Object, error) {
		select {
		case <-v.failures:
			return true, nil, errors.New("timeout")
		default:
			return false, nil, nil
		}
	})
	var err error
	v.proof, err = NewProof(v.client, "kube-queue", v.clock)
	require.NoError(t, err)
	go v.proof.Watch(t.Context())
	return v
}

// installed is the Secret of the chart.
func installed() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-queue", Name: ProofSecret, UID: "1", ResourceVersion: "1"}}
}

// keep runs Keep until stop is called.
func (v *vault) keep() (stop func()) {
	v.t.Helper()
	ctx, cancel := context.WithCancel(v.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- v.proof.Keep(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			v.t.Error(err)
		}
	}
}

// stored returns the proofs of the Secret, as policies see them.
func (v *vault) stored() map[string]string {
	v.t.Helper()
	proofs := map[string]string{}
	if secret, err := v.client.CoreV1().Secrets("kube-queue").Get(v.t.Context(), ProofSecret, metav1.GetOptions{}); err == nil {
		for key, proof := range secret.Data {
			proofs[key] = base64.StdEncoding.EncodeToString(proof)
		}
	}
	return proofs
}

// eventually waits until the Secret meets the condition and the Proof has seen it.
func (v *vault) eventually(what string, so func(proofs map[string]string) bool) map[string]string {
	v.t.Helper()
	var proofs map[string]string
	require.Eventually(v.t, what, func() error {
		proofs = v.stored()
		for _, proof := range proofs {
			if !v.proves(proof) {
				return errors.New("a proof is not seen")
			}
		}
		if !so(proofs) {
			return fmt.Errorf("the Secret has %v", slices.Collect(maps.Keys(proofs)))
		}
		return nil
	})
	return proofs
}

func complete(proofs map[string]string) bool { return proofs["current"] != "" && proofs["next"] != "" }

// passes moves the clock once the keeper waits for it.
func (v *vault) passes(d time.Duration) {
	v.t.Helper()
	require.Becomes(v.t, "somebody waits for the clock", v.clock.HasWaiters)
	v.clock.Step(d)
}

func (v *vault) proves(proof string) bool {
	return v.proof.Proves(fmt.Appendf(nil, `{"spec":{},"status":{"proof":%q}}`, proof))
}

func TestAnEmptySecretIsFilledAtOnce(t *testing.T) {
	v := newVault(t, installed())
	if v.proves("") {
		t.Error("an empty Secret proves something")
	}
	defer v.keep()()
	proofs := v.eventually("it is filled", complete)
	if proofs["current"] == proofs["next"] || len(proofs["current"]) != 44 {
		t.Errorf("the proofs are %v", proofs)
	}
}

func TestTheProofIsRotatedEveryHourAndThePreviousOneAccepted(t *testing.T) {
	v := newVault(t, installed())
	defer v.keep()()
	before := v.eventually("it is filled", complete)
	v.passes(rotateAfter - time.Minute)
	v.passes(0)
	if now := v.stored(); !maps.Equal(now, before) {
		t.Errorf("it was rotated early: %v", now)
	}
	v.passes(time.Minute)
	now := v.eventually("it is rotated", func(now map[string]string) bool { return now["previous"] == before["current"] })
	if now["current"] != before["next"] || now["next"] == before["next"] {
		t.Errorf("%v was rotated to %v", before, now)
	}
	v.passes(rotateAfter)
	v.eventually("it is rotated again", func(later map[string]string) bool { return later["previous"] == now["current"] })
	if v.proves(before["current"]) {
		t.Error("a proof of two hours ago is accepted")
	}
}

// The next leader may have another clock.
func TestANewLeaderRotatesOnceWhateverItsClockSays(t *testing.T) {
	v := newVault(t, installed())
	stop := v.keep()
	before := v.eventually("it is filled", complete)
	stop()
	v.clock.SetTime(time.Unix(0, 0))
	defer v.keep()()
	now := v.eventually("it is rotated", func(now map[string]string) bool { return now["current"] == before["next"] })
	v.passes(time.Minute)
	v.passes(0)
	if later := v.stored(); !maps.Equal(now, later) {
		t.Errorf("%v was rotated to %v", now, later)
	}
}

func TestADeletedOrDamagedSecretIsMadeAgain(t *testing.T) {
	v := newVault(t) // the chart has not created it
	defer v.keep()()
	before := v.eventually("it is made", complete)
	secrets := v.client.CoreV1().Secrets("kube-queue")
	require.NoError(t, secrets.Delete(t.Context(), ProofSecret, metav1.DeleteOptions{}))
	again := v.eventually("it is made again", func(now map[string]string) bool { return complete(now) && now["current"] != before["current"] })
	for key, proof := range before {
		if v.proves(proof) {
			t.Errorf("the %s proof of the deleted Secret is accepted", key)
		}
	}
	damaged, err := secrets.Get(t.Context(), ProofSecret, metav1.GetOptions{})
	require.NoError(t, err)
	damaged.Data = map[string][]byte{"current": []byte("short")}
	_, err = secrets.Update(t.Context(), damaged, metav1.UpdateOptions{})
	require.NoError(t, err)
	v.eventually("it is repaired", func(now map[string]string) bool {
		return complete(now) && now["current"] != again["current"] && now["previous"] == ""
	})
	if v.proves(base64.StdEncoding.EncodeToString([]byte("short"))) {
		t.Error("a value of any length is accepted")
	}
}

func TestARotationThatFailsIsRepeated(t *testing.T) {
	v := newVault(t, installed())
	v.failures <- struct{}{}
	defer v.keep()()
	v.passes(retryAfter)
	v.eventually("it is filled", complete)
}

// Another leader may have written it since it was read.
func TestARotationNamesTheVersionThatItReplaces(t *testing.T) {
	v := newVault(t, installed())
	defer v.keep()()
	v.eventually("it is filled", complete)
	for _, action := range v.client.Actions() {
		if patch, is := action.(kubetesting.PatchAction); is && (!strings.Contains(string(patch.GetPatch()), `"resourceVersion"`) || !strings.Contains(string(patch.GetPatch()), `"uid"`)) {
			t.Error("the patch names no version")
		}
	}
}

func TestOnlyAReviewWithAProofIsAnswered(t *testing.T) {
	v := newVault(t, installed())
	stop := v.keep()
	before := v.eventually("it is filled", complete)
	v.passes(rotateAfter)
	proofs := v.eventually("it is rotated", func(now map[string]string) bool { return now["previous"] == before["current"] })
	v.passes(rotateAfter)
	proofs = v.eventually("it is rotated again", func(now map[string]string) bool { return now["previous"] == proofs["current"] })
	stop()
	secret, err := base64.StdEncoding.DecodeString(proofs["current"])
	require.NoError(t, err)
	m := model(t, 2)
	for name, c := range map[string]struct {
		status   string
		answered bool
	}{
		"no status":                      {`null`, false},
		"no proof":                       {`{}`, false},
		"an empty proof":                 {`{"proof":""}`, false},
		"a wrong proof":                  {fmt.Sprintf(`{"proof":%q}`, base64.StdEncoding.EncodeToString(make([]byte, proofSize))), false},
		"a part of the proof":            {fmt.Sprintf(`{"proof":%q}`, proofs["current"][:40]), false},
		"the proof in hexadecimal":       {fmt.Sprintf(`{"proof":"%x"}`, secret), false},
		"the proof of two hours ago":     {fmt.Sprintf(`{"proof":%q}`, before["current"]), false},
		"a list of proofs":               {fmt.Sprintf(`{"proof":[%q]}`, proofs["current"]), false},
		"the proof elsewhere":            {fmt.Sprintf(`{"message":%q}`, proofs["current"]), false},
		"another letter case":            {fmt.Sprintf(`{"Proof":%q}`, proofs["current"]), false},
		"the previous proof":             {fmt.Sprintf(`{"proof":%q}`, proofs["previous"]), true},
		"the current proof":              {fmt.Sprintf(`{"proof":%q}`, proofs["current"]), true},
		"the next proof":                 {fmt.Sprintf(`{"proof":%q}`, proofs["next"]), true},
		"the proof beside another field": {fmt.Sprintf(`{"message":"mine","proof":%q}`, proofs["current"]), true},
	} {
		t.Run(name, func(t *testing.T) {
			for path := range answers() {
				for _, dry := range []bool{true, false} {
					o := options(m, &asked{allow: func(authorizationv1.ResourceAttributes) bool { return true }})
					o.Genuine = v.proof.Proves
					if !c.answered {
						o.Model = func(context.Context) (*visibility.Model, error) {
							t.Error("an answer is computed for a stranger")
							return nil, errors.New("no answer")
						}
					}
					status, response, body, _ := send(t, o, "/reviews/"+path, "Review", `{"unit":"unit"},"status":`+c.status, dry)
					if status != http.StatusOK || response.Allowed != (c.answered && dry) || !c.answered && (response.Result.Message != unproven || response.Result.Code != http.StatusForbidden) {
						t.Errorf("%s: status %d: %s", path, status, body)
					}
					if response.Allowed && !strings.Contains(string(response.Patch), `"op":"add","path":"/status","value":{"observedTime"`) {
						t.Errorf("%s: the patch keeps what was in the status: %s", path, response.Patch)
					}
					for key, proof := range proofs {
						if strings.Contains(body+string(response.Patch), proof) {
							t.Errorf("%s: the answer has the %s proof: %s", path, key, body)
						}
					}
				}
			}
		})
	}
}

func TestNoErrorHasTheProof(t *testing.T) {
	v := newVault(t, installed())
	defer v.keep()()
	proof := v.eventually("it is filled", complete)["current"]
	for name, c := range map[string]struct {
		spec string
		o    Options
	}{
		"a spec of another type":         {`"x"`, options(model(t, 1), &asked{})},
		"the API server does not answer": {`{"allNamespaces":true}`, options(model(t, 1), &asked{err: errors.New("timeout")})},
		"no state":                       {`{}`, Options{Model: func(context.Context) (*visibility.Model, error) { return nil, context.Canceled }}},
	} {
		c.o.Genuine = v.proof.Proves
		status, _, body, _ := send(t, c.o, "/reviews/queuereviews", "Review", c.spec+fmt.Sprintf(`,"status":{"proof":%q}`, proof), true)
		if status != http.StatusBadRequest || strings.Contains(body, proof) {
			t.Errorf("%s: status %d: %s", name, status, body)
		}
	}
	for _, text := range []string{`{`, `{"status":{"proof":` + proof + `}}`, `[]`, ``} {
		if v.proof.Proves([]byte(text)) {
			t.Errorf("%q is a proof", text)
		}
		writer := httptest.NewRecorder()
		o := Options{Genuine: v.proof.Proves, Clock: v.clock, Record: func(string, string, time.Duration) {}}
		Handler(o).ServeHTTP(writer, httptest.NewRequest(http.MethodPost, "/reviews/queuereviews", strings.NewReader(text)))
		if writer.Code != http.StatusBadRequest || strings.Contains(writer.Body.String(), proof) {
			t.Errorf("%q: status %d: %s", text, writer.Code, writer.Body)
		}
	}
}

// A replica may be elected at the moment when its program stops.
func TestAProofWhoseWatchEndedIsKeptWithoutError(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
	proof, err := NewProof(fake.NewClientset(installed()), "kube-queue", clock)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	proof.Watch(ctx)
	require.NoError(t, proof.Keep(ctx))
}
