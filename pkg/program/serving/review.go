package serving

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// How long an answer of the API server counts, and how many are kept at most.
const (
	allowedFor   = time.Minute
	refusedFor   = 10 * time.Second
	mostVerdicts = 1000
)

// reviewer lets those through of whom the API server says that they may get the path: it
// is asked whose the token is, and what that one may do. No answer is a refusal.
type reviewer struct {
	tokens authenticationclient.TokenReviewInterface
	access authorizationclient.SubjectAccessReviewInterface
	clock  clock.PassiveClock

	mu    sync.Mutex
	known map[question]verdict
}

// question of a request; of the token only a hash is kept.
type question struct {
	token [sha256.Size]byte
	path  string
}

// verdict on it, as an HTTP status.
type verdict struct {
	status int
	until  time.Time
}

func newReviewer(tokens authenticationclient.TokenReviewInterface, access authorizationclient.SubjectAccessReviewInterface, clock clock.PassiveClock) *reviewer {
	return &reviewer{tokens: tokens, access: access, clock: clock, known: map[question]verdict{}}
}

// guard has next answer those that may ask.
func (r *reviewer) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		status, err := r.judge(req.Context(), bearer(req), req.URL.Path)
		if err != nil {
			klog.FromContext(req.Context()).Error(err, "Cannot ask the API server who may read metrics")
			status = http.StatusServiceUnavailable
		}
		switch status {
		case http.StatusOK:
			next.ServeHTTP(w, req)
		case http.StatusUnauthorized:
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "a token of the cluster is needed", status)
		case http.StatusForbidden:
			http.Error(w, "whose token this is may not get "+req.URL.Path, status)
		default:
			http.Error(w, "the API server was not reached, and nobody is let in without it", status)
		}
	})
}

// bearer is the token of the request; empty for none.
func bearer(req *http.Request) string {
	scheme, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// judge reports the status by which the request is answered: 200, 401 or 403.
func (r *reviewer) judge(ctx context.Context, token, path string) (int, error) {
	if token == "" {
		return http.StatusUnauthorized, nil
	}
	asked := question{sha256.Sum256([]byte(token)), path}
	if status, known := r.recall(asked); known {
		return status, nil
	}
	status, err := r.ask(ctx, token, path)
	if err == nil {
		r.remember(asked, status)
	}
	return status, err
}

func (r *reviewer) ask(ctx context.Context, token, path string) (int, error) {
	whose, err := r.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("reviewing a token: %w", err)
	}
	if !whose.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := whose.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for key, value := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	may, err := r.access.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
	}}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return 0, fmt.Errorf("reviewing what %s may do: %w", user.Username, err)
	case !may.Status.Allowed || may.Status.Denied:
		return http.StatusForbidden, nil
	default:
		return http.StatusOK, nil
	}
}

func (r *reviewer) recall(asked question) (status int, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, known := r.known[asked]
	if !known || r.clock.Now().After(v.until) {
		return 0, false
	}
	return v.status, true
}

func (r *reviewer) remember(asked question, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) >= mostVerdicts {
		clear(r.known)
	}
	lasts := refusedFor
	if status == http.StatusOK {
		lasts = allowedFor
	}
	r.known[asked] = verdict{status, r.clock.Now().Add(lasts)}
}
