package elasticquota

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/follow"
)

// Times between attempts to keep the tree.
const (
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// revisionSelector selects the ControllerRevisions that hold a valid tree.
const revisionSelector = wellknown.LastValidTreeLabel + "=true"

var revisionResource = appsv1.SchemeGroupVersion.WithResource("controllerrevisions")

// wanted is what to keep in the cluster: a tree, or none. The zero value is unknown and changes nothing.
type wanted struct {
	tree *kept
	none bool
}

func (w wanted) same(other wanted) bool {
	return w.none == other.none && (w.tree == nil) == (other.tree == nil) && (w.tree == nil || w.tree.revision == other.tree.revision)
}

// keeper keeps the last valid tree in a ControllerRevision. The data of a ControllerRevision is immutable, so the
// keeper creates a new one before it deletes the older ones. A process that ends in between leaves both, and the newest
// counts.
type keeper struct {
	revisions dynamic.ResourceInterface
	namespace string
	clock     clock.Clock
	// moving reports whether settings of Queues must still move to renamed quotas.
	moving func() bool
	// failed is called from another goroutine with the first error of each tree that cannot be kept.
	failed func(error)

	mu     sync.Mutex
	wanted wanted
	// reported is whether failed was called for the wanted tree.
	reported bool
	ready    chan struct{}
}

func newKeeper(revisions dynamic.ResourceInterface, namespace string, clock clock.Clock, moving func() bool, failed func(error)) *keeper {
	return &keeper{revisions: revisions, namespace: namespace, clock: clock, moving: moving, failed: failed, ready: make(chan struct{}, 1)}
}

// want sets what to keep.
func (k *keeper) want(w wanted) {
	k.mu.Lock()
	changed := !k.wanted.same(w)
	if changed {
		k.wanted, k.reported = w, false
	}
	k.mu.Unlock()
	if changed {
		k.look()
	}
}

// look makes the keeper compare the kept tree with the wanted one.
func (k *keeper) look() { follow.Wake(k.ready) }

// run keeps what is wanted until the context ends.
func (k *keeper) run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	var again <-chan time.Time
	retry := firstRetry
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.ready:
		case <-again:
		}
		err := k.keep(ctx)
		if ctx.Err() != nil {
			return
		}
		switch {
		case err == nil:
			again, retry = nil, firstRetry
			continue
		case errors.Is(err, errMoving):
			again = k.clock.After(firstRetry)
			continue
		}
		logger.Error(err, "Cannot keep the last valid quota tree; trying again", "after", retry)
		k.report(err)
		again, retry = k.clock.After(retry), min(2*retry, lastRetry)
	}
}

func (k *keeper) report(err error) {
	k.mu.Lock()
	first := !k.reported
	k.reported = true
	k.mu.Unlock()
	if first {
		k.failed(err)
	}
}

// errMoving means that a process that starts still needs the previous tree.
var errMoving = errors.New("settings of Queues are being moved to renamed quotas")

// keep makes the cluster hold only what is wanted. It reads the ControllerRevisions from the API server, because this
// is rare and a cache may be outdated.
func (k *keeper) keep(ctx context.Context) error {
	k.mu.Lock()
	w := k.wanted
	k.mu.Unlock()
	switch {
	case w.tree == nil && !w.none:
		return nil
	case w.tree != nil && k.moving():
		return errMoving
	}
	list, err := k.revisions.List(ctx, metav1.ListOptions{LabelSelector: revisionSelector})
	if err != nil {
		return fmt.Errorf("listing ControllerRevisions in namespace %s: %w", k.namespace, err)
	}
	items := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		items[i] = &list.Items[i]
	}
	sortRevisions(items)
	exists := false
	// last is what a restart would read now. It is deleted last, so that at most two exist and the newer one counts.
	var last, others []*unstructured.Unstructured
	for _, item := range items {
		switch read, err := readKept(item); {
		case err == nil && w.tree != nil && read.revision == w.tree.revision:
			exists = true
		case err == nil && len(last) == 0:
			last = append(last, item)
		case w.tree == nil || item.GetName() != w.tree.revision: // create replaces a damaged one with this name
			others = append(others, item)
		}
	}
	if err := k.delete(ctx, others); err != nil {
		return err
	}
	if w.tree != nil && !exists {
		number := int64(1)
		if len(last) > 0 {
			number = numberOf(last[0]) + 1
		}
		if err := k.create(ctx, w.tree.object(k.namespace, number)); err != nil {
			return err
		}
	}
	return k.delete(ctx, last)
}

// create creates the ControllerRevision. It replaces an existing one with this name, which is damaged or has lost its
// label.
func (k *keeper) create(ctx context.Context, revision *unstructured.Unstructured) error {
	_, err := k.revisions.Create(ctx, revision, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		if err := k.delete(ctx, []*unstructured.Unstructured{revision}); err != nil {
			return err
		}
		_, err = k.revisions.Create(ctx, revision, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("creating ControllerRevision %s/%s: %w", k.namespace, revision.GetName(), err)
	}
	return nil
}

func (k *keeper) delete(ctx context.Context, revisions []*unstructured.Unstructured) error {
	for _, revision := range revisions {
		var options metav1.DeleteOptions
		if uid := revision.GetUID(); uid != "" {
			options.Preconditions = &metav1.Preconditions{UID: &uid}
		}
		err := k.revisions.Delete(ctx, revision.GetName(), options)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting ControllerRevision %s/%s: %w", k.namespace, revision.GetName(), err)
		}
	}
	return nil
}
