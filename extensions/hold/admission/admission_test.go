package admission

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/pkg/metrics"
	"kube-queue.dev/kube-queue/test/require"
)

const job = `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a","annotations":{"scheduling.x-k8s.io/suspend":"true"}},"spec":{"template":{}}}`

// ask sends a request to the webhook, and returns the status, the patch, and what was recorded.
func ask(t *testing.T, path, kind, object, old string) (status int, patch, recorded string) {
	t.Helper()
	handler := Handler(registry.All(), clocktesting.NewFakePassiveClock(time.Unix(0, 0)), func(webhook, result string, _ time.Duration) {
		recorded = webhook + " " + result
	})
	operation := "CREATE"
	if old != "" {
		operation = "UPDATE"
		old = `,"oldObject":` + old
	}
	body := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"` + operation + `","kind":` + kind + `,"object":` + object + old + `}}`
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
	if response.Code != http.StatusOK {
		return response.Code, response.Body.String(), recorded
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(response.Body.Bytes(), &review); err != nil || !review.Response.Allowed {
		t.Fatalf("%s: %v", response.Body.Bytes(), err)
	}
	return response.Code, string(review.Response.Patch), recorded
}

func TestEachPathHoldsJobs(t *testing.T) {
	const batch = `{"group":"batch","version":"v1","kind":"Job"}`
	held := strings.Replace(job, `"spec":{`, `"spec":{"suspend":true,`, 1)
	unmarked := strings.Replace(job, `"true"`, `"false"`, 1)
	owned := strings.Replace(job, `"name":"a"`, `"name":"a","ownerReferences":[{"uid":"o","controller":true}]`, 1)
	for name, test := range map[string]struct {
		path, object, old string
		patch             []string
		recorded          string
	}{
		"a marked job":                   {"/hold", job, "", []string{`{"op":"add","path":"/spec/suspend","value":true}`}, "hold patched"},
		"a held job":                     {"/hold", held, "", nil, "hold unchanged"},
		"a held job that is resumed":     {"/hold", job, held, []string{`"/spec/suspend"`}, "hold patched"},
		"a job of a managed namespace":   {"/managed", unmarked, "", []string{`kube-queue~1managed`, `"/metadata/annotations/scheduling.x-k8s.io~1suspend","value":"true"`, `"/spec/suspend"`}, "managed patched"},
		"a part of a managed namespace":  {"/managed", owned, "", []string{`kube-queue~1managed`}, "managed patched"},
		"a marked pod":                   {"/gate", job, "", []string{`"/metadata/labels"`, `"/spec/schedulingGates"`}, "gate patched"},
		"a pod of a managed namespace":   {"/gate-managed", unmarked, "", []string{`kube-queue~1managed`, `"/spec/schedulingGates"`}, "gate patched"},
		"a part that the fence looks at": {"/managed-fenced", owned, "", []string{`kube-queue~1not-part-of","value":"o"`}, "managed patched"},
	} {
		t.Run(name, func(t *testing.T) {
			status, patch, recorded := ask(t, test.path, batch, test.object, test.old)
			if status != http.StatusOK || recorded != test.recorded || (patch == "") != (test.patch == nil) {
				t.Errorf("status %d, %s, patch %s", status, recorded, patch)
			}
			require.Says(t, "the patch", patch, test.patch...)
			if strings.Contains(patch, "not-part-of") != strings.Contains(name, "fence") {
				t.Errorf("the patch is %s", patch)
			}
		})
	}
}

// A RayJob that its operator rejects while suspended gets the mark, and its unit says why it is not held.
func TestAJobThatCannotBeSuspendedIsOnlyMarked(t *testing.T) {
	const rayJob = `{"group":"ray.io","version":"v1","kind":"RayJob"}`
	_, patch, _ := ask(t, "/managed", rayJob, `{"apiVersion":"ray.io/v1","kind":"RayJob","metadata":{"name":"a"},"spec":{"clusterSelector":{"ray.io/cluster":"c"}}}`, "")
	if !strings.Contains(patch, "scheduling.x-k8s.io/suspend") || strings.Contains(patch, "/spec/suspend") {
		t.Errorf("the patch is %s", patch)
	}
}

func TestAJobThatCannotBeDecodedIsHeld(t *testing.T) {
	const tfJob = `{"group":"kubeflow.org","version":"v1","kind":"TFJob"}`
	for _, path := range []string{"/hold", "/managed"} {
		_, patch, _ := ask(t, path, tfJob, `{"apiVersion":"kubeflow.org/v1","kind":"TFJob","metadata":{"name":"a"},"spec":{"tfReplicaSpecs":7,"runPolicy":{}}}`, "")
		require.Says(t, path+": the patch", patch, `/spec/runPolicy/suspend","value":true`)
	}
}

func TestAnInvalidTreeIsRefused(t *testing.T) {
	tree := func(min string) string {
		return `{"apiVersion":"scheduling.sigs.k8s.io/v1beta1","kind":"ElasticQuotaTree","metadata":{"name":"t","namespace":"kube-system"},"spec":{"root":{"name":"root","max":{"cpu":"4"},"min":{"cpu":"4"},"children":[{"name":"a","namespaces":["a"],"min":{"cpu":"` + min + `"},"max":{"cpu":"4"}}]}}}`
	}
	for min, want := range map[string]string{"2": "", "5": "root/a"} {
		handler := Handler(registry.All(), clocktesting.NewFakePassiveClock(time.Unix(0, 0)), func(string, string, time.Duration) {})
		response := httptest.NewRecorder()
		body := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","object":` + tree(min) + `}}`
		handler.ServeHTTP(response, httptest.NewRequest(http.MethodPost, "/trees", strings.NewReader(body)))
		var review admissionv1.AdmissionReview
		if err := json.Unmarshal(response.Body.Bytes(), &review); err != nil {
			t.Fatalf("%s: %v", response.Body, err)
		}
		if allowed := review.Response.Allowed; allowed != (want == "") || !allowed && !strings.Contains(review.Response.Result.Message, want) {
			t.Errorf("min %s: %s", min, response.Body)
		}
	}
}

func TestAKindThatIsNotKnownIsAnError(t *testing.T) {
	status, text, recorded := ask(t, "/hold", `{"group":"example.com","version":"v1","kind":"Thing"}`, `{}`, "")
	if status == http.StatusOK || !strings.Contains(text, "example.com/v1, Kind=Thing") || recorded != "hold error" {
		t.Errorf("status %d, %s: %s", status, recorded, text)
	}
	if status, _, _ := ask(t, "/other", `{}`, `{}`, ""); status != http.StatusNotFound {
		t.Errorf("another path is answered %d", status)
	}
}

func TestRequestsAndTheCertificateAreMeasured(t *testing.T) {
	registered := metrics.New(metrics.ExtensionsProgram, "v0")
	handler := Handler(registry.All(), clocktesting.NewFakePassiveClock(time.Unix(0, 0)), registered.Webhook)
	for _, object := range []string{job, "{"} {
		body := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","kind":{"group":"batch","version":"v1","kind":"Job"},"object":` + object + `}}`
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/hold", strings.NewReader(body)))
	}
	registered.WebhookCertificateExpires(1000)
	response := httptest.NewRecorder()
	registered.Handler().ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Says(t, "the page of metrics", response.Body.String(),
		`kube_queue_webhook_requests_total{result="patched",webhook="hold"} 1`+"\n",
		`kube_queue_webhook_requests_total{result="error",webhook="hold"} 1`+"\n",
		`kube_queue_webhook_duration_seconds_count{webhook="hold"} 2`+"\n",
		`kube_queue_webhook_certificate_expiry_timestamp_seconds 1000`+"\n")
}

// BenchmarkHold measures the answer to a request for a marked TFJob of two roles, without the network.
func BenchmarkHold(b *testing.B) {
	const role = `{"replicas":2,"template":{"spec":{"containers":[{"name":"tensorflow","image":"a","resources":{"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"1","memory":"1Gi"}}}]}}}`
	const body = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","kind":{"group":"kubeflow.org","version":"v1","kind":"TFJob"},` +
		`"object":{"apiVersion":"kubeflow.org/v1","kind":"TFJob","metadata":{"name":"a","annotations":{"scheduling.x-k8s.io/suspend":"true"}},"spec":{"tfReplicaSpecs":{"PS":` + role + `,"Worker":` + role + `}}}}}`
	handler := Handler(registry.All(), clocktesting.NewFakePassiveClock(time.Unix(0, 0)), func(string, string, time.Duration) {})
	b.ReportAllocs()
	for b.Loop() {
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, httptest.NewRequest(http.MethodPost, "/hold", strings.NewReader(body)))
		if !strings.Contains(response.Body.String(), "JSONPatch") {
			b.Fatal(response.Body)
		}
	}
}

// The API server accepts 3 MiB, and etcd 1.5 MiB. An update has the job twice.
func TestTheLargestJobIsHeld(t *testing.T) {
	const batch = `{"group":"batch","version":"v1","kind":"Job"}`
	of := func(size int, env string) string {
		return strings.Replace(job, `"template":{}`, `"template":{"spec":{"containers":[{"env":[`+strings.Repeat(env+",", size/(len(env)+1))+env+`]}]}}`, 1)
	}
	const small, large = `{"name":"VAR","value":"x"}`, `{"name":"SCRIPT","value":"if [ \u003c ]; then echo \\\"a, b\\\"; fi"}`
	for name, test := range map[string]struct{ object, old string }{
		"a new one":  {of(3<<20, large), ""},
		"an updated": {of(1536<<10, small), of(1536<<10, small)},
	} {
		t.Run(name, func(t *testing.T) {
			if size := len(test.object) + len(test.old); size > Largest/2+Largest/4 {
				t.Errorf("there is no room beside %d bytes", size)
			}
			for _, path := range []string{"/hold", "/managed-fenced"} {
				if status, patch, _ := ask(t, path, batch, test.object, test.old); status != http.StatusOK || !strings.Contains(patch, "/spec/suspend") {
					t.Errorf("%s answers %d, %.300s", path, status, patch)
				}
			}
		})
	}
}
