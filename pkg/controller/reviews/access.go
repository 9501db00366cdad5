package reviews

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/visibility"
)

// mostNamespaces is about how many namespaces one answer asks the API server about. Units in other namespaces are
// hidden.
const mostNamespaces = 100

// Authorize asks the API server whether a user may do something.
type Authorize func(context.Context, *authorizationv1.SubjectAccessReview) (allowed bool, err error)

// How long to use an answer of the API server about a user's rights, and how many answers to keep.
const (
	rightsLast = 10 * time.Second
	mostRights = 4096
)

// Cached returns an Authorize that repeats a question only after 10 seconds: a caller that reads many pages asks it for
// each page. Errors are not kept.
func Cached(authorize Authorize, clock clock.PassiveClock) Authorize {
	known := cache.NewLRUExpireCacheWithClock(mostRights, clock)
	return func(ctx context.Context, review *authorizationv1.SubjectAccessReview) (bool, error) {
		question, err := json.Marshal(review.Spec)
		if err != nil {
			return false, err
		}
		key := sha256.Sum256(question) // a user can be in any number of groups
		if allowed, has := known.Get(key); has {
			return allowed.(bool), nil
		}
		allowed, err := authorize(ctx, review)
		if err == nil {
			known.Add(key, allowed, rightsLast)
		}
		return allowed, err
	}
}

// access is what a caller may see, according to the API server. Each answer has its own.
type access struct {
	ctx       context.Context
	user      authenticationv1.UserInfo
	authorize Authorize
	// units are the namespaces asked about so far; "" is all of them.
	units map[string]bool
	// queues and trees are nil until the API server is asked about them.
	queues, trees *bool
	// failed is why the API server did not answer.
	failed error
}

func (a *access) access() visibility.Access {
	return visibility.Access{
		Units: func(namespace string) bool { return a.mayListUnits("") || a.mayListUnits(namespace) },
		Queues: func() bool {
			return a.once(&a.queues, authorizationv1.ResourceAttributes{Group: v1alpha1.GroupName, Resource: "queues"})
		},
		Trees: func() bool {
			return a.once(&a.trees, authorizationv1.ResourceAttributes{Group: quotav1beta1.GroupName, Resource: "elasticquotatrees",
				Namespace: quotav1beta1.TreeNamespace})
		},
	}
}

func (a *access) mayListUnits(namespace string) bool {
	may, known := a.units[namespace]
	if !known {
		if len(a.units) > mostNamespaces {
			return false
		}
		may = a.ask(authorizationv1.ResourceAttributes{Group: v1alpha1.GroupName, Resource: "queueunits", Namespace: namespace})
		a.units[namespace] = may
	}
	return may
}

func (a *access) once(known **bool, of authorizationv1.ResourceAttributes) bool {
	if *known == nil {
		*known = new(a.ask(of))
	}
	return **known
}

// ask asks the API server whether the caller may list something. Without an answer, nothing is allowed.
func (a *access) ask(of authorizationv1.ResourceAttributes) bool {
	if a.failed != nil {
		return false
	}
	of.Verb = "list"
	extra := make(map[string]authorizationv1.ExtraValue, len(a.user.Extra))
	for key, value := range a.user.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	allowed, err := a.authorize(a.ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: &of, User: a.user.Username, Groups: a.user.Groups, UID: a.user.UID, Extra: extra}})
	if err != nil {
		a.failed = fmt.Errorf("asking the API server what %s may list: %w", a.user.Username, err)
		return false
	}
	return allowed
}
