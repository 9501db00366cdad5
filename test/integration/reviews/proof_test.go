package reviews

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kube-queue.dev/kube-queue/pkg/controller/reviews"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

// secret is the name of a unit that only an administrator may see.
const secret = "merger"

// world is a controller that answers reviews, and everything that was seen of it.
type world struct {
	t       *testing.T
	kube    kubernetes.Interface
	address string
	program *harness.Program
	// proofs are all proofs that were ever in the Secret, in base64.
	proofs map[string]bool
	// seen is everything that clients have received.
	seen bytes.Buffer
}

func begin(t *testing.T) *world {
	t.Helper()
	if suite.Kubernetes < "1.36" {
		t.Fatal("this test needs the policies that Kubernetes serves from 1.36 on")
	}
	w := &world{t: t, proofs: map[string]bool{}, program: suite.Program(t, harness.Controller)}
	var err error
	w.kube, err = kubernetes.NewForConfig(suite.Config())
	harness.Must(t, err)
	w.address = suite.AnswersReviews(t, w.program)
	w.program.Start()
	for _, manifest := range []string{
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: team-a}\n",
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: team-b}\n",
		"apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: QueueUnit\nmetadata: {name: " + secret + ", namespace: team-b}\n" +
			"spec: {consumerRef: {apiVersion: example.com/v1, kind: Deal, name: " + secret + "}, resource: {cpu: \"1\"}}\n",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: alice, namespace: team-a}\n" +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: may-write-reviews}\nsubjects: [{kind: User, name: alice}]\n",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: may-write-reviews}\n" +
			"rules: [{apiGroups: [visibility.kube-queue.dev], resources: ['*'], verbs: ['*']}]\n",
	} {
		_, err := suite.KubectlWith(t.Context(), manifest, "apply", "-f", "-")
		harness.Must(t, err)
	}
	w.answers()
	return w
}

// answers waits until reviews are answered, with the unit that only the administrator sees.
func (w *world) answers() {
	w.t.Helper()
	harness.Eventually(w.t, time.Minute, "reviews are answered", func() (bool, string) {
		out, err := w.ask("", "team-b", "{}", "create", "--dry-run=server")
		w.read()
		return err == nil && strings.Contains(out, secret), fmt.Sprint(out, err)
	})
}

// read records the current proofs, by key.
func (w *world) read() map[string]string {
	w.t.Helper()
	found, err := w.kube.CoreV1().Secrets(clustertest.Namespace).Get(w.t.Context(), reviews.ProofSecret, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	now := map[string]string{}
	for key, proof := range found.Data {
		now[key] = base64.StdEncoding.EncodeToString(proof)
		w.proofs[now[key]] = true
	}
	return now
}

// ask sends a review of units with a status through kubectl, and returns what the user receives.
func (w *world) ask(user, namespace, status string, args ...string) (string, error) {
	args = append(args, "-o", "yaml", "-f", "-")
	if user != "" {
		args = append(args, "--as="+user)
	}
	out, err := suite.KubectlWith(w.t.Context(), "apiVersion: visibility.kube-queue.dev/v1alpha1\nkind: QueueReview\nmetadata: {name: q, namespace: "+namespace+
		", annotations: {kube-queue/proof: mine}}\nspec: {show: Units, allNamespaces: true}\nstatus: "+status+"\n", args...)
	fmt.Fprintln(&w.seen, out, err)
	return out, err
}

// post sends a review directly to the port. The sender is unauthenticated and claims to be an administrator.
func (w *world) post(path, proof string) (status int, body string) {
	w.t.Helper()
	text := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","namespace":"team-b","dryRun":true,
		"kind":{"group":"visibility.kube-queue.dev","version":"v1alpha1","kind":"QueueReview"},"userInfo":{"username":"root","groups":["system:masters"]},
		"object":{"spec":{"show":"Units","allNamespaces":true,"unit":%q},"status":{"proof":%q},"metadata":{"annotations":{"kube-queue/proof":%q}}}}}`, secret, proof, proof)
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, "https://"+w.address+path, strings.NewReader(text))
	harness.Must(w.t, err)
	response, err := client.Do(request)
	harness.Must(w.t, err)
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	harness.Must(w.t, err)
	return response.StatusCode, string(all)
}

// refuses checks that a request with this proof gets no answer.
func (w *world) refuses(what, proof string) {
	w.t.Helper()
	for _, path := range []string{"/reviews/queuereviews", "/reviews/queueunitreviews", "/reviews/quotareviews", "/reviews", "/reviews/../reviews/queuereviews"} {
		status, body := w.post(path, proof)
		var review admissionv1.AdmissionReview
		_ = json.Unmarshal([]byte(body), &review)
		forbidden := review.Response != nil && !review.Response.Allowed && review.Response.Patch == nil && review.Response.Result.Code == http.StatusForbidden
		if status == http.StatusOK && !forbidden || strings.Contains(body, "patch") || strings.Contains(body, secret) {
			w.t.Errorf("%s at %s: status %d: %s", what, path, status, body)
		}
	}
}

func TestOnlyReviewsThatCameThroughTheAPIServerAreAnswered(t *testing.T) {
	w := begin(t)
	first := w.read()
	t.Run("who posts to the port gets no answer", func(t *testing.T) {
		w.t = t
		raw, err := base64.StdEncoding.DecodeString(first["current"])
		harness.Must(t, err)
		for what, proof := range map[string]string{"nothing": "", "something": "mine", "another encoding": hex.EncodeToString(raw), "a part": first["current"][:20],
			"32 zeros": base64.StdEncoding.EncodeToString(make([]byte, 32))} {
			w.refuses(what, proof)
		}
		// With the proof, the same request is answered.
		if _, body := w.post("/reviews/queuereviews", first["current"]); !strings.Contains(body, `"patch"`) {
			t.Errorf("with the proof: %s", body)
		}
	})
	t.Run("a user is answered whatever he writes into the review", func(t *testing.T) {
		w.t = t
		for _, status := range []string{"null", "{}", "{proof: mine}", `{observedTime: "2026-01-01T00:00:00.000000Z"}`, `{proof: "", observedTime: "2026-01-01T00:00:00.000000Z"}`} {
			for _, args := range [][]string{{"create", "--dry-run=server"}, {"apply", "--dry-run=server"}, {"apply", "--server-side", "--dry-run=server"}} {
				if len(args) == 3 && strings.Contains(status, "proof") {
					continue // the schema does not declare it
				}
				out, err := w.ask("alice", "team-a", status, append(args, "--validate=false")...)
				if err != nil || !strings.Contains(out, "hiddenUnits") && !strings.Contains(out, "hidden:") || strings.Contains(out, secret) || strings.Contains(out, "proof: ") && !strings.Contains(out, "kube-queue/proof: mine") {
					t.Errorf("%v with status %s: %v\n%s", args, status, err, out)
				}
			}
		}
	})
	t.Run("nothing is stored", func(t *testing.T) {
		w.t = t
		for _, args := range [][]string{{"create"}, {"apply"}, {"apply", "--server-side"}, {"replace"}, {"replace", "--dry-run=server"}} {
			out, err := w.ask("alice", "team-a", `{observedTime: "2026-01-01T00:00:00.000000Z"}`, args...)
			if err == nil || !strings.Contains(err.Error(), "never stored") && !strings.Contains(err.Error(), "not found") {
				t.Errorf("%v: %v\n%s", args, err, out)
			}
		}
	})
	t.Run("a deleted Secret is made again, and its proofs are worth nothing", func(t *testing.T) {
		w.t = t
		old := w.read()
		_, err := suite.Kubectl(t.Context(), "-n", clustertest.Namespace, "delete", "secret", reviews.ProofSecret)
		harness.Must(t, err)
		w.answers()
		for key, proof := range old {
			w.refuses("the "+key+" proof of before", proof)
		}
	})
	t.Run("each start rotates, and the proof of before is accepted once more", func(t *testing.T) {
		w.t = t
		old := w.read()
		for i := range 2 {
			w.program.Stop()
			w.program.Start()
			w.answers()
			now := w.read()
			if i == 0 && (now["current"] != old["next"] || now["previous"] != old["current"]) {
				t.Errorf("the proofs %v were rotated to %v", old, now)
			}
			if _, body := w.post("/reviews/queuereviews", old["current"]); strings.Contains(body, `"patch"`) != (i == 0) {
				t.Errorf("after %d rotations: %s", i+1, body)
			}
		}
	})
	t.Run("a damaged Secret is repaired", func(t *testing.T) {
		w.t = t
		_, err := suite.Kubectl(t.Context(), "-n", clustertest.Namespace, "patch", "secret", reviews.ProofSecret, "--type=json", `--patch=[{"op": "replace", "path": "/data", "value": {"current": ""}}]`)
		harness.Must(t, err)
		w.answers()
		w.refuses("nothing", "")
	})
	// The user's status would pass if the policy did not replace it, and the response would contain the proof.
	t.Run("without the webhook nobody gets the proof", func(t *testing.T) {
		w.t = t
		w.without("mutatingwebhookconfiguration", "nothing has answered|status.observedTime", "create", "--dry-run=server")
		w.without("mutatingwebhookconfiguration", "nothing has answered|status.observedTime", "create")
		w.answers()
	})
	t.Run("without the policy nobody is answered", func(t *testing.T) {
		w.t = t
		w.without("mutatingadmissionpolicy", "cannot verify that the API server sent this review; try again", "create", "--dry-run=server")
		w.answers()
	})
	t.Run("the proof is in no response, error, event, metric or log", func(t *testing.T) {
		w.t = t
		w.quiet()
	})
}

// without deletes an object of the reviews, checks that the user gets one of these messages, and installs the object
// again.
func (w *world) without(kind, messages string, args ...string) {
	w.t.Helper()
	_, err := suite.Kubectl(w.t.Context(), "delete", kind, reviews.Configuration)
	harness.Must(w.t, err)
	defer func() {
		_, err := suite.Kubectl(context.WithoutCancel(w.t.Context()), "apply", "--server-side", "--force-conflicts", "-f", filepath.Join(suite.Repository, "deploy", "policies", "reviews.yaml"))
		harness.Must(w.t, err)
	}()
	harness.Eventually(w.t, time.Minute, "a user gets "+messages, func() (bool, string) {
		out, err := w.ask("alice", "team-a", `{observedTime: "2026-01-01T00:00:00.000000Z"}`, append(args, "--validate=false")...)
		return err != nil && slices.ContainsFunc(strings.Split(messages, "|"), func(message string) bool { return strings.Contains(err.Error(), message) }), fmt.Sprint(out, err)
	})
}

// quiet checks that no user, audit log or other log has received a proof.
func (w *world) quiet() {
	w.t.Helper()
	w.read()
	if len(w.proofs) < 8 {
		w.t.Errorf("only %d proofs were seen", len(w.proofs))
	}
	events, err := suite.Kubectl(w.t.Context(), "get", "events,queueunits,queuereviews,mutatingadmissionpolicies,mutatingwebhookconfigurations", "-A", "-o", "yaml")
	harness.Must(w.t, err)
	metrics, err := suite.Kubectl(w.t.Context(), "get", "--raw", "/metrics")
	harness.Must(w.t, err)
	places := map[string]string{"responses": w.seen.String(), "objects": events, "metrics": metrics}
	logs, err := filepath.Glob(filepath.Join(suite.Logs, "*"))
	harness.Must(w.t, err)
	for _, file := range append(logs, suite.AuditLog) {
		text, err := os.ReadFile(file)
		harness.Must(w.t, err)
		places[file] = string(text)
	}
	inSecrets := 0
	for _, place := range slices.Sorted(maps.Keys(places)) {
		lines := strings.Split(places[place], "\n")
		for _, line := range lines {
			// The audit log has the contents of Secrets only at this level.
			of := strings.Contains(line, `"resource":"secrets"`)
			for proof := range w.proofs {
				if has := strings.Contains(line, proof); has && of {
					inSecrets++
				} else if has {
					w.t.Errorf("%s has a proof: %s", place, line)
				}
			}
		}
		w.t.Logf("%s: %d lines", place, len(lines))
	}
	if inSecrets == 0 || strings.Count(places[suite.AuditLog], `"resource":"queuereviews"`) == 0 || !strings.Contains(places[suite.AuditLog], `"observedTime"`) {
		w.t.Errorf("the audit log has neither Secrets nor answers: proofs are there %d times", inSecrets)
	}
}
