package serving

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// How long an answer of the API server is cached, and the maximum number of cached answers.
const (
	allowedFor   = time.Minute
	refusedFor   = 10 * time.Second
	mostVerdicts = 1000
)

// reviewer passes on requests that the API server allows: a TokenReview identifies the user, and a SubjectAccessReview
// decides whether the user may get the path. Without an answer, the request is rejected.
type reviewer struct {
	tokens authenticationclient.TokenReviewInterface
	access authorizationclient.SubjectAccessReviewInterface
	// known are the latest verdicts by question, as HTTP statuses.
	known *cache.LRUExpireCache
}

// question identifies a request to authorize. Only a hash of the token is stored.
type question struct {
	token [sha256.Size]byte
	path  string
}

func newReviewer(tokens authenticationclient.TokenReviewInterface, access authorizationclient.SubjectAccessReviewInterface, clock clock.PassiveClock) *reviewer {
	return &reviewer{tokens: tokens, access: access, known: cache.NewLRUExpireCacheWithClock(mostVerdicts, clock)}
}

// guard passes authorized requests on to next.
func (r *reviewer) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		status, err := r.authorize(req.Context(), bearer(req), req.URL.Path)
		if err != nil {
			klog.FromContext(req.Context()).Error(err, "Cannot ask the API server whether a client may read metrics")
			status = http.StatusServiceUnavailable
		}
		switch status {
		case http.StatusOK:
			next.ServeHTTP(w, req)
		case http.StatusUnauthorized:
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "a valid bearer token of the cluster is required", status)
		case http.StatusForbidden:
			http.Error(w, "the user of this token is not allowed to get "+req.URL.Path, status)
		default:
			http.Error(w, "cannot reach the API server to authorize the request", status)
		}
	})
}

// bearer returns the bearer token of the request; empty if it has none.
func bearer(req *http.Request) string {
	scheme, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// authorize returns the HTTP status of the decision: 200, 401 or 403.
func (r *reviewer) authorize(ctx context.Context, token, path string) (int, error) {
	if token == "" {
		return http.StatusUnauthorized, nil
	}
	asked := question{sha256.Sum256([]byte(token)), path}
	if status, known := r.known.Get(asked); known {
		return status.(int), nil
	}
	status, err := r.ask(ctx, token, path)
	if err != nil {
		return 0, err
	}
	lasts := refusedFor
	if status == http.StatusOK {
		lasts = allowedFor
	}
	r.known.Add(asked, status, lasts)
	return status, nil
}

func (r *reviewer) ask(ctx context.Context, token, path string) (int, error) {
	review, err := r.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("creating a TokenReview: %w", err)
	}
	if !review.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := review.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for key, value := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	access, err := r.access.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
	}}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return 0, fmt.Errorf("creating a SubjectAccessReview for user %q: %w", user.Username, err)
	case !access.Status.Allowed || access.Status.Denied:
		return http.StatusForbidden, nil
	default:
		return http.StatusOK, nil
	}
}
