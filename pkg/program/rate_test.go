package program

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/clientset"
	"kube-queue.dev/kube-queue/pkg/lenient"
	"kube-queue.dev/kube-queue/test/require"
)

// busyServer is an API server that counts all requests except those for leases.
type busyServer struct {
	requests atomic.Int64
	lease    json.RawMessage
}

func (s *busyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if !strings.Contains(r.URL.Path, "/leases") {
		s.requests.Add(1)
		kind := `"kind":"List","apiVersion":"v1"`
		if strings.HasSuffix(r.URL.Path, "/queueunits") {
			kind = `"kind":"QueueUnitList","apiVersion":"scheduling.x-k8s.io/v1alpha1"`
		}
		_, _ = w.Write([]byte("{" + kind + `,"metadata":{},"items":[]}`))
		return
	}
	if r.Method != http.MethodGet {
		_ = json.NewDecoder(r.Body).Decode(&s.lease)
	}
	if s.lease == nil {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
		return
	}
	_, _ = w.Write(s.lease)
}

// The rate is so low that no request is added to the burst while the test runs. A request that would have to wait
// beyond the deadline of its context fails immediately.
func TestAllClientsOfAProgramShareItsRequestRate(t *testing.T) {
	const burst = 4
	server := &busyServer{}
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	env := envOf(t, web.URL, func(o *options) { o.qps, o.burst = 1e-6, burst })

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sent, held := 0, 0
	for name, request := range requestsOf(t, env.Config) {
		for range 2 {
			switch err := request(ctx); {
			case err == nil:
				sent++
			case strings.Contains(err.Error(), "rate limiter"):
				held++
			default:
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if got := server.requests.Load(); got != burst || sent != burst || held == 0 {
		t.Errorf("%d requests arrived, %d succeeded and %d had to wait, want %d requests", got, sent, held, burst)
	}

	env.Config.ContentType = runtime.ContentTypeJSON // which the server reads
	leads := false
	if err := env.Lead(ctx, func(context.Context) error { leads = true; return nil }); err != nil || !leads {
		t.Errorf("a program that has used up its requests does not get its lease: %v", err)
	}
}

// requestsOf returns a request of a new client of each type that the programs use.
func requestsOf(t *testing.T, config *rest.Config) map[string]func(context.Context) error {
	t.Helper()
	units := v1alpha1.SchemeGroupVersion.WithResource("queueunits")
	compact := rest.CopyConfig(config)
	compact.ContentType, compact.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	core, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	pods, err := kubernetes.NewForConfig(compact)
	require.NoError(t, err)
	own, err := clientset.NewForConfig(config)
	require.NoError(t, err)
	objects, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	names, err := metadata.NewForConfig(metadata.ConfigFor(config))
	require.NoError(t, err)
	each, err := lenient.NewForConfig(config, lenient.Kind{GroupVersionKind: schema.GroupVersionKind{Group: units.Group, Version: units.Version, Kind: "QueueUnit"},
		Resource: units.Resource, New: func() lenient.Object { return &v1alpha1.QueueUnit{} }})
	require.NoError(t, err)
	all := metav1.ListOptions{}
	return map[string]func(context.Context) error{
		"typed":    func(ctx context.Context) error { _, err := core.CoreV1().Events("").List(ctx, all); return err },
		"protobuf": func(ctx context.Context) error { _, err := pods.CoreV1().Pods("").List(ctx, all); return err },
		"own": func(ctx context.Context) error {
			_, err := own.SchedulingV1alpha1().QueueUnits("").List(ctx, all)
			return err
		},
		"dynamic":  func(ctx context.Context) error { _, err := objects.Resource(units).List(ctx, all); return err },
		"metadata": func(ctx context.Context) error { _, err := names.Resource(units).List(ctx, all); return err },
		"lenient": func(ctx context.Context) error {
			_, err := each.Each(ctx, "", all, func(lenient.Object) error { return nil })
			return err
		},
	}
}

// kubeconfig returns the name of a kubeconfig file for the address.
func kubeconfig(t *testing.T, address string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	content := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c",
		"contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],
		"clusters":[{"name":"k","cluster":{"server":%q}}],"users":[{"name":"u","user":{}}]}`, address)
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	return file
}

// envOf returns the environment of a program that connects to the address.
func envOf(t *testing.T, address string, set ...func(*options)) *Env {
	t.Helper()
	opts := defaultOptions()
	opts.kubeconfig = kubeconfig(t, address)
	for _, change := range set {
		change(opts)
	}
	env, err := newEnv("thing", opts)
	require.NoError(t, err)
	return env
}
