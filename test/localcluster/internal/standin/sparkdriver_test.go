package standin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
)

// crowdedPods is a fake API server that accepts a limited number of pods, and records the names of
// all creates. The driver is in a phase.
type crowdedPods struct {
	phase string
	room  int
	there map[string]bool
	tried []string
}

func (c *crowdedPods) ServeHTTP(answer http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		_, _ = fmt.Fprintf(answer, `{"kind":"Pod","status":{"phase":%q}}`, c.phase)
		return
	}
	var pod sparkPod
	_ = json.NewDecoder(r.Body).Decode(&pod)
	name := pod.Metadata.Name
	c.tried = append(c.tried, name)
	code, reason := http.StatusCreated, ""
	switch {
	case c.room == 0:
		code, reason = http.StatusForbidden, "Forbidden"
	case c.there[name]:
		code, reason = http.StatusConflict, "AlreadyExists"
	default:
		c.room--
		c.there[name] = true
	}
	answer.WriteHeader(code)
	_, _ = fmt.Fprintf(answer, `{"kind":"Status","code":%d,"reason":%q}`, code, reason)
}

func TestDriverCreatesEachExecutorOnce(t *testing.T) {
	pods := &crowdedPods{phase: "Running", room: 1, there: map[string]bool{"a-exec-1": true}}
	server := httptest.NewServer(pods)
	t.Cleanup(server.Close)
	drivers := &sparkDrivers{client: clientOf(t, server.URL), known: map[string]*sparkApp{}}
	plan, err := json.Marshal(executorPlan{Count: 3, NamePrefix: "a"})
	if err != nil {
		t.Fatal(err)
	}
	driver := &pod{}
	driver.Metadata = metadata{Name: "a-driver", Namespace: "ns", UID: "u", Annotations: map[string]string{sparkExecutorsAnnotation: string(plan)}}
	driver.Status.Phase = "Running"
	// The first exists, as after a restart of the stand-in. Only the second is accepted.
	if err := drivers.handle(t.Context(), driver, false); err == nil {
		t.Error("a refused executor was not reported")
	}
	pods.phase, pods.room = "Failed", 9
	other := *driver
	other.Metadata.UID = "v"
	if err := drivers.handle(t.Context(), &other, false); err != nil {
		t.Errorf("a driver that has ended meanwhile: %v", err)
	}
	pods.phase = "Running"
	for range 2 {
		if err := drivers.handle(t.Context(), driver, false); err != nil {
			t.Error(err)
		}
	}
	if want := []string{"a-exec-1", "a-exec-2", "a-exec-3", "a-exec-3"}; !reflect.DeepEqual(pods.tried, want) {
		t.Errorf("tried to create %q, not %q", pods.tried, want)
	}
}
