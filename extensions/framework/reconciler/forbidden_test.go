package reconciler

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/pkg/metrics"
)

func TestAMetricShowsWhatMayNotBeWatched(t *testing.T) {
	registry := metrics.New(metrics.ExtensionsProgram, "v1")
	f := &Framework{Options: Options{Metrics: metrics.NewExtensions(registry)}}
	report := f.Reporter(schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayjobs"})
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "ray.io", Resource: "rayjobs"}, "", errors.New("no rights"))
	for _, step := range []struct {
		err  error
		want string
	}{{nil, "0"}, {forbidden, "1"}, {errors.New("no answer"), "1"}, {nil, "0"}, {apierrors.NewUnauthorized("no token"), "1"}} {
		report(step.err)
		shown := httptest.NewRecorder()
		registry.Handler().ServeHTTP(shown, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if line := `kube_queue_watch_forbidden{resource="rayjobs.ray.io"} ` + step.want; !strings.Contains(shown.Body.String(), line) {
			t.Errorf("after %v the metrics lack %s", step.err, line)
		}
	}
}
