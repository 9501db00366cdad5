package reviews

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/json"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/pkg/follow"
)

// ProofSecret is the name of the Secret with the proofs.
const ProofSecret = "kube-queue-reviews-proof"

// Keys of the Secret. All three are accepted, because an API server, or this replica, may not have seen a rotation yet.
const (
	// proofCurrent is the proof that the policy kube-queue-reviews copies.
	proofCurrent  = "current"
	proofPrevious = "previous"
	proofNext     = "next"
)

const (
	// rotateAfter is how long a proof is current.
	rotateAfter = time.Hour
	// retryAfter is the time until a failed rotation is retried, and between checks whether one is due.
	retryAfter = 5 * time.Second
	// proofSize is the length of a proof in bytes.
	proofSize = 32
)

// Proof shows that a review comes from an API server. The policy kube-queue-reviews sets the status of each new review
// to {proof: X}. X is in a Secret that only API servers, kube-queue-controller and administrators can read. The answer
// replaces the status, and the schema rejects a status with only the proof. So the proof leaves the API server only to
// webhooks.
type Proof struct {
	client    kubernetes.Interface
	namespace string
	clock     clock.WithTicker
	secret    cache.SharedIndexInformer
	// changed receives a value when the Secret may have changed.
	changed chan struct{}
}

// NewProof returns a Proof with the Secret of a namespace. It proves nothing before Watch.
func NewProof(client kubernetes.Interface, namespace string, clock clock.WithTicker) (*Proof, error) {
	p := &Proof{client: client, namespace: namespace, clock: clock, changed: make(chan struct{}, 1)}
	p.secret = coreinformers.NewFilteredSecretInformer(client, namespace, 0, cache.Indexers{}, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, ProofSecret).String()
	})
	wake := func(any) { follow.Wake(p.changed) }
	if _, err := follow.Objects(p.secret, wake, wake); err != nil {
		return nil, fmt.Errorf("watching Secret %s/%s: %w", namespace, ProofSecret, err)
	}
	return p, nil
}

// Watch watches the Secret until ctx is done.
func (p *Proof) Watch(ctx context.Context) { p.secret.RunWithContext(ctx) }

// read returns the last seen proofs.
func (p *Proof) read() map[string][]byte {
	object, _, _ := p.secret.GetStore().GetByKey(p.namespace + "/" + ProofSecret)
	if secret, is := object.(*corev1.Secret); is {
		return secret.Data
	}
	return nil
}

// Proves reports whether a review has a valid proof.
func (p *Proof) Proves(review []byte) bool {
	var given struct {
		Status struct {
			Proof string `json:"proof"`
		} `json:"status"`
	}
	if err := json.Unmarshal(review, &given); err != nil {
		return false
	}
	equal := 0
	for _, proof := range p.read() {
		if len(proof) == proofSize {
			// Policies see the data of a Secret in base64.
			equal |= subtle.ConstantTimeCompare([]byte(base64.StdEncoding.EncodeToString(proof)), []byte(given.Status.Proof))
		}
	}
	return equal == 1
}

// Keep rotates the proof until ctx is done, and recreates the Secret if it is deleted or damaged. Only one replica at a
// time runs it. It rotates immediately, because it does not know when another replica last did, and it compares no
// clocks.
func (p *Proof) Keep(ctx context.Context) error {
	cache.WaitForCacheSync(ctx.Done(), p.secret.HasSynced)
	ticker := p.clock.NewTicker(retryAfter)
	defer ticker.Stop()
	for due := p.clock.Now(); ctx.Err() == nil; {
		now := p.clock.Now()
		isDue := !now.Before(due)
		if isDue || !isComplete(p.read()) {
			rotated, err := p.rotate(ctx, isDue)
			if err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Cannot rotate the proof that reviews come from the API server, retrying", "after", retryAfter)
			}
			if rotated {
				due = now.Add(rotateAfter)
			}
		}
		select {
		case <-p.changed:
		case <-ticker.C():
		case <-ctx.Done():
		}
	}
	return nil
}

func isComplete(data map[string][]byte) bool {
	return len(data[proofCurrent]) == proofSize && len(data[proofNext]) == proofSize
}

// rotate makes the next proof the current one, and reports whether it did. If no rotation is due, it only repairs the
// Secret: the cache may still show the Secret as it was before the last rotation.
func (p *Proof) rotate(ctx context.Context, isDue bool) (bool, error) {
	secrets := p.client.CoreV1().Secrets(p.namespace)
	present, err := secrets.Get(ctx, ProofSecret, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("reading Secret %s/%s: %w", p.namespace, ProofSecret, err)
	}
	if !isDue && isComplete(present.Data) {
		return false, nil
	}
	data := map[string][]byte{proofCurrent: present.Data[proofNext], proofNext: newProof()}
	if len(data[proofCurrent]) != proofSize {
		data[proofCurrent] = newProof()
	}
	if previous := present.Data[proofCurrent]; len(previous) == proofSize {
		data[proofPrevious] = previous
	}
	wanted := applycorev1.Secret(ProofSecret, p.namespace).WithData(data)
	if present.UID != "" { // another leader may write it too
		wanted.WithUID(present.UID).WithResourceVersion(present.ResourceVersion)
	}
	// RBAC can limit creation by apply to a name, but not creation by create.
	if _, err = secrets.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: "kube-queue-controller", Force: true}); err != nil {
		return false, fmt.Errorf("writing Secret %s/%s: %w", p.namespace, ProofSecret, err)
	}
	return true, nil
}

func newProof() []byte {
	proof := make([]byte, proofSize)
	_, _ = rand.Read(proof) // it never fails
	return proof
}
