package reviews

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/controller"
	"kube-queue.dev/kube-queue/pkg/controller/codec"
	"kube-queue.dev/kube-queue/pkg/forecast"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/pkg/visibility"
	"kube-queue.dev/kube-queue/test/require"
)

// model returns a model of one unit in each of this many namespaces. All units wait in one queue.
func model(t *testing.T, namespaces int) *visibility.Model {
	t.Helper()
	names := resources.NewNames()
	backend, _, err := tree.New(names, tree.Node{Name: "root", Namespaces: []string{"*"}}, tree.Options{})
	require.NoError(t, err)
	now := time.Unix(1000, 0)
	core := scheduler.New(scheduler.Options{Policy: queue.RoundRobin})
	core.Apply(now, scheduler.QuotaChanged{Backend: backend})
	core.Apply(now, scheduler.QueueChanged{Queue: "root", Stop: scheduler.Hold})
	for i := range namespaces {
		key := fmt.Sprintf("team-%d/unit", i)
		core.Apply(now, scheduler.UnitChanged{Unit: scheduler.Unit{Key: key, Facts: scheduler.Facts{UID: key, Version: 1,
			Demand: quota.Demand{Preemptible: true, Requests: resources.Vector{{ID: names.ID("cpu"), Value: 1}}}}}})
	}
	core.Apply(now, scheduler.Listed{})
	core.Next(now)
	view := core.View(now, names)
	m := visibility.New(view, nil, "kube-queue")
	reader := codec.Reader{Kinds: &codec.Kinds{}, Demand: func(unit *v1alpha1.QueueUnit) (quota.Demand, error) { return codec.Requests(view.Names, unit) }}
	m.Read = func(unit *v1alpha1.QueueUnit) (scheduler.Unit, error) { return reader.ReadComplete(unit) }
	return m
}

// asked are the questions to the API server, as resource in namespace.
type asked struct {
	all   []string
	allow func(authorizationv1.ResourceAttributes) bool
	err   error
}

func (a *asked) authorize(_ context.Context, review *authorizationv1.SubjectAccessReview) (bool, error) {
	of := review.Spec.ResourceAttributes
	a.all = append(a.all, fmt.Sprintf("%s %s %s in %q", review.Spec.User, of.Verb, of.Resource, of.Namespace))
	return a.allow != nil && a.allow(*of), a.err
}

// send sends a review, and returns the response and what was recorded.
func send(t *testing.T, o Options, path, kind, spec string, dry bool) (status int, response *admissionv1.AdmissionResponse, body, recorded string) {
	t.Helper()
	if o.Genuine == nil {
		o.Genuine = func([]byte) bool { return true }
	}
	o.Clock = clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	o.Record = func(kind, result string, _ time.Duration) { recorded = kind + " " + result }
	text := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","namespace":"team-1","dryRun":%t,
		"kind":{"kind":%q},"userInfo":{"username":"alice"},"object":{"spec":%s}}}`, dry, kind, spec)
	writer := httptest.NewRecorder()
	Handler(o).ServeHTTP(writer, httptest.NewRequest(http.MethodPost, path, strings.NewReader(text)))
	var review admissionv1.AdmissionReview
	_ = json.Unmarshal(writer.Body.Bytes(), &review) // an error has another body
	return writer.Code, review.Response, writer.Body.String(), recorded
}

func options(m *visibility.Model, a *asked) Options {
	return Options{Authorize: a.authorize, Advise: controller.NewEstimates(clocktesting.NewFakePassiveClock(time.Unix(1000, 0)), nil).Advise, Model: func(context.Context) (*visibility.Model, error) { return m, nil }}
}

func TestTheAnswerIsAPatchOfTheStatus(t *testing.T) {
	a := &asked{allow: func(of authorizationv1.ResourceAttributes) bool { return of.Namespace == "team-1" }}
	status, response, body, recorded := send(t, options(model(t, 3), a), "/reviews/queueunitreviews", "QueueUnitReview", `{"unit":"unit"}`, true)
	if status != http.StatusOK || !response.Allowed || recorded != "queueunitreviews patched" {
		t.Fatalf("status %d, %s: %s", status, recorded, body)
	}
	require.Says(t, "the patch", string(response.Patch), `"path":"/status"`, `"reason":"QueueStopped"`, `"position":2`, `"aheadHidden":1`)
	if strings.Contains(string(response.Patch), "team-0") {
		t.Errorf("the patch names a unit that alice may not list: %s", response.Patch)
	}
}

func TestUnitsAndTheFirstOfEachGroupHaveEstimates(t *testing.T) {
	o := options(model(t, 3), &asked{allow: func(authorizationv1.ResourceAttributes) bool { return true }})
	o.Estimate = func(*visibility.Model, string, string) (forecast.Estimate, time.Time, bool) {
		return forecast.Estimate{Wait: time.Hour}, time.Unix(1000, 0), true
	}
	for spec, want := range map[string]int{
		`{"allNamespaces":true,"show":"Units"}`:                 3,
		`{"allNamespaces":true,"show":"Groups","queue":"root"}`: 3,
		`{"allNamespaces":true,"show":"Groups"}`:                1, // of the front unit
		`{"allNamespaces":true,"show":"Queues","queue":"root"}`: 0,
	} {
		_, response, body, _ := send(t, o, "/reviews/queuereviews", "QueueReview", spec, true)
		if got := strings.Count(string(response.Patch), `"start":{`); got != want {
			t.Errorf("%s: %d estimates, want %d: %s%s", spec, got, want, body, response.Patch)
		}
	}
}

func TestAReviewWithoutAnAnswerIsRefused(t *testing.T) {
	m := model(t, 2)
	everything := func() *asked {
		return &asked{allow: func(authorizationv1.ResourceAttributes) bool { return true }}
	}
	for name, c := range map[string]struct {
		options Options
		spec    string
		stored  bool
		want    string
		missing bool
	}{
		"it would be stored":      {options: options(m, everything()), spec: `{"unit":"unit"}`, stored: true, want: "--dry-run=server"},
		"an unknown unit":         {options: options(m, everything()), spec: `{"unit":"other"}`, want: `QueueUnit "other" does not exist in namespace "team-1"`, missing: true},
		"no right":                {options: options(m, &asked{}), spec: `{"unit":"unit"}`, want: `you may not list QueueUnits in namespace "team-1"`},
		"nobody has listed units": {options: Options{Model: func(context.Context) (*visibility.Model, error) { return nil, controller.ErrNotDeciding }}, spec: `{}`, want: "has just started"},
	} {
		t.Run(name, func(t *testing.T) {
			status, response, body, recorded := send(t, c.options, "/reviews/queueunitreviews", "QueueUnitReview", c.spec, !c.stored)
			if status != http.StatusOK || response.Allowed || !strings.Contains(response.Result.Message, c.want) || recorded != "queueunitreviews refused" || (response.Result.Details != nil) != c.missing {
				t.Errorf("status %d, %s: %s", status, recorded, body)
			}
		})
	}
}

func TestAnErrorIsNoAnswer(t *testing.T) {
	m := model(t, 2)
	for name, c := range map[string]struct {
		options    Options
		path, spec string
	}{
		"the API server does not answer":       {options(m, &asked{err: errors.New("timeout")}), "/reviews/queuereviews", `{"allNamespaces":true}`},
		"a spec of another type":               {options(m, &asked{}), "/reviews/queueunitreviews", `"x"`},
		"the state is not read before the end": {Options{Model: func(context.Context) (*visibility.Model, error) { return nil, context.Canceled }}, "/reviews/quotareviews", `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			if status, _, body, recorded := send(t, c.options, c.path, "Review", c.spec, true); status != http.StatusBadRequest || !strings.HasSuffix(recorded, " error") {
				t.Errorf("status %d, %s: %s", status, recorded, body)
			}
		})
	}
	if status, _, _, _ := send(t, options(m, &asked{}), "/reviews/others", "Other", `{}`, true); status != http.StatusNotFound {
		t.Errorf("another path has status %d", status)
	}
}

// The webhook is called before the API server validates a review.
func TestHostileNewUnitsAreRefused(t *testing.T) {
	const ref = `"consumerRef":{"apiVersion":"batch/v1","kind":"Job","name":"x"}`
	own := &asked{allow: func(of authorizationv1.ResourceAttributes) bool { return of.Namespace == "team-1" }}
	m := model(t, 3)
	for name, c := range map[string]struct{ spec, want string }{
		"a valid one":         {`{"newUnit":{` + ref + `,"resource":{"cpu":"1"}}}`, `"reason":"QueueStopped"`},
		"a huge exponent":     {`{"newUnit":{` + ref + `,"resource":{"cpu":"1e99999999"}}}`, "cannot be read"},
		"a tiny one":          {`{"newUnit":{` + ref + `,"podSets":[{"name":"a","count":1,"requests":{"cpu":"1e-99999999"}}]}}`, "cannot be read"},
		"a negative amount":   {`{"newUnit":{` + ref + `,"resource":{"cpu":"-1"}}}`, "-1 is negative"},
		"a large amount":      {`{"newUnit":{` + ref + `,"resource":{"cpu":"9e99"}}}`, "exceeds the largest possible request"},
		"negative counts":     {`{"newUnit":{` + ref + `,"podSets":[{"name":"a","count":-5,"minCount":-9}]}}`, `"reason":"QueueStopped"`},
		"10,000 pod sets":     {`{"newUnit":{` + ref + `,"podSets":[` + strings.TrimSuffix(strings.Repeat(`{"name":"a","count":1},`, 10_000), ",") + `]}}`, "at most 256 are allowed"},
		"a long name":         {`{"newUnit":{` + ref + `,"quotaName":"` + strings.Repeat("x", 300) + `"}}`, "at most 253 are allowed"},
		"a number for a list": {`{"newUnit":{"podSets":7}}`, "podSets"},
		"a real unit as well": {`{"unit":"unit","newUnit":{` + ref + `}}`, "set either spec.unit or spec.newUnit"},
		"a time in the past":  {`{"newUnit":{` + ref + `,"submissionTime":"1970-01-01T00:00:00.000000Z"}}`, `"position":4`},
	} {
		t.Run(name, func(t *testing.T) {
			_, response, body, _ := send(t, options(m, own), "/reviews/queueunitreviews", "QueueUnitReview", c.spec, true)
			if response != nil {
				body += string(response.Patch)
			}
			if !strings.Contains(body, c.want) || strings.Contains(body, "team-0") || strings.Contains(body, "team-2") {
				t.Errorf("it is answered %s", body)
			}
		})
	}
	if _, response, body, _ := send(t, options(m, &asked{}), "/reviews/queueunitreviews", "QueueUnitReview", `{"newUnit":{`+ref+`}}`, true); response.Allowed || !strings.Contains(body, "you may not list QueueUnits") {
		t.Errorf("without rights: %s", body)
	}
}

// The number of questions is limited, so the namespace of the caller comes first.
func TestTheOwnUnitsAreShownWhateverOtherNamespacesThereAre(t *testing.T) {
	a := &asked{allow: func(of authorizationv1.ResourceAttributes) bool { return of.Namespace == "team-1" }}
	for _, show := range []string{"Queues", "Groups", "Units"} {
		_, response, body, _ := send(t, options(model(t, 300), a), "/reviews/queuereviews", "QueueReview", `{"allNamespaces":true,"show":"`+show+`"}`, true)
		if !response.Allowed || !strings.Contains(string(response.Patch), `"selected":1`) {
			t.Errorf("%s: %s", show, body)
		}
	}
}

func TestTheSameQuestionAboutRightsIsAskedAgainAfterTenSeconds(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	a := &asked{allow: func(authorizationv1.ResourceAttributes) bool { return true }}
	authorize := Cached(a.authorize, now)
	ask := func(user, namespace string) (bool, error) {
		return authorize(t.Context(), &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "queueunits", Namespace: namespace}}})
	}
	expect := func(user, namespace string, allowed bool, questions int) {
		t.Helper()
		if got, err := ask(user, namespace); err != nil || got != allowed || len(a.all) != questions {
			t.Errorf("%s in %s: allowed %t, %v, %d questions", user, namespace, got, err, len(a.all))
		}
	}
	expect("alice", "a", true, 1)
	expect("alice", "a", true, 1)
	expect("alice", "b", true, 2)
	expect("bob", "a", true, 3)
	a.allow = nil
	expect("alice", "a", true, 3)
	now.SetTime(now.Now().Add(rightsLast + time.Millisecond))
	expect("alice", "a", false, 4)
	a.err = errors.New("timeout")
	for range 2 {
		if _, err := ask("carol", "a"); err == nil {
			t.Error("an error is no answer")
		}
	}
	if len(a.all) != 6 {
		t.Errorf("after an error it is not asked again: %d questions", len(a.all))
	}
}

// One answer must not cost an unlimited number of requests.
func TestTheAPIServerIsAskedAboutALimitedNumberOfNamespaces(t *testing.T) {
	a := &asked{allow: func(of authorizationv1.ResourceAttributes) bool { return of.Namespace != "" }}
	_, response, _, _ := send(t, options(model(t, 300), a), "/reviews/queuereviews", "QueueReview", `{"allNamespaces":true}`, true)
	if len(a.all) > mostNamespaces+3 {
		t.Errorf("it is asked %d times", len(a.all))
	}
	if a.all[0] != `alice list queueunits in ""` && a.all[0] != `alice list queues in ""` {
		t.Errorf("the first question is %s", a.all[0])
	}
	require.Says(t, "the patch", string(response.Patch), `"hidden":200`)
	seen := map[string]bool{}
	for _, question := range a.all {
		if seen[question] {
			t.Errorf("it is asked twice: %s", question)
		}
		seen[question] = true
	}
}
