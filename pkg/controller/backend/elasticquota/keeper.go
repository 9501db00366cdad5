package elasticquota

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// Times between two attempts to keep the tree.
const (
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// revisionSelector selects the ControllerRevisions that hold a valid tree.
const revisionSelector = wellknown.LastValidTreeLabel + "=true"

var revisionResource = appsv1.SchemeGroupVersion.WithResource("controllerrevisions")

// wanted is what is to be kept in the cluster: a tree, or none. The zero value is unknown, and changes nothing.
type wanted struct {
	tree *kept
	none bool
}

func (w wanted) same(other wanted) bool {
	return w.none == other.none && (w.tree == nil) == (other.tree == nil) && (w.tree == nil || w.tree.revision == other.tree.revision)
}

// keeper keeps the last valid tree in a ControllerRevision. The data of a ControllerRevision is immutable, so a
// new one is created before the older ones are deleted: a process that ends in between leaves both, and the newest
// counts. One that exists already becomes the newest before the others are deleted.
type keeper struct {
	revisions dynamic.ResourceInterface
	namespace string
	clock     clock.Clock
	// failed is called with the error of the first attempt of each tree that cannot be kept. It is called by another
	// goroutine.
	failed func(error)

	mu     sync.Mutex
	wanted wanted
	// reported is whether failed was called for what is wanted.
	reported bool
	ready    chan struct{}
}

func newKeeper(revisions dynamic.ResourceInterface, namespace string, clock clock.Clock, failed func(error)) *keeper {
	return &keeper{revisions: revisions, namespace: namespace, clock: clock, failed: failed, ready: make(chan struct{}, 1)}
}

// want sets what is to be kept.
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

// look makes the keeper compare what is kept with what is wanted.
func (k *keeper) look() {
	select {
	case k.ready <- struct{}{}:
	default:
	}
}

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
		if err == nil {
			again, retry = nil, firstRetry
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

// keep makes the cluster hold what is wanted and nothing else. It reads the ControllerRevisions from the API server,
// because this is rare and a cache may be outdated.
func (k *keeper) keep(ctx context.Context) error {
	k.mu.Lock()
	w := k.wanted
	k.mu.Unlock()
	if w.tree == nil && !w.none {
		return nil
	}
	list, err := k.revisions.List(ctx, metav1.ListOptions{LabelSelector: revisionSelector})
	if err != nil {
		return fmt.Errorf("listing ControllerRevisions in namespace %s: %w", k.namespace, err)
	}
	var others []*unstructured.Unstructured
	var own *unstructured.Unstructured
	newest := int64(0) // of the others
	for i := range list.Items {
		item := &list.Items[i]
		if read, err := readKept(item); err == nil && w.tree != nil && read.revision == w.tree.revision {
			own = item
			continue
		}
		others = append(others, item)
		newest = max(newest, numberOf(item))
	}
	switch {
	case w.tree == nil:
	case own == nil:
		err = k.create(ctx, w.tree.object(k.namespace, newest+1))
	case len(others) > 0 && numberOf(own) <= newest:
		err = k.renumber(ctx, own, newest+1)
	}
	if err != nil {
		return err
	}
	var failures []error
	for _, other := range others {
		if w.tree != nil && other.GetName() == w.tree.revision {
			continue // it was damaged, and create has replaced it
		}
		failures = append(failures, k.delete(ctx, other.GetName(), metav1.Preconditions{UID: ptr.To(other.GetUID())}))
	}
	return errors.Join(failures...)
}

// create creates the ControllerRevision. One that has its name is damaged or has lost its label, and is replaced.
func (k *keeper) create(ctx context.Context, revision *unstructured.Unstructured) error {
	_, err := k.revisions.Create(ctx, revision, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		if err := k.delete(ctx, revision.GetName(), metav1.Preconditions{}); err != nil {
			return err
		}
		_, err = k.revisions.Create(ctx, revision, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("creating ControllerRevision %s/%s: %w", k.namespace, revision.GetName(), err)
	}
	return nil
}

// renumber makes a ControllerRevision the newest.
func (k *keeper) renumber(ctx context.Context, revision *unstructured.Unstructured, number int64) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": revision.GetUID()}, "revision": number})
	if err == nil {
		_, err = k.revisions.Patch(ctx, revision.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	}
	if err != nil {
		return fmt.Errorf("renumbering ControllerRevision %s/%s: %w", k.namespace, revision.GetName(), err)
	}
	return nil
}

func (k *keeper) delete(ctx context.Context, name string, only metav1.Preconditions) error {
	err := k.revisions.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &only})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting ControllerRevision %s/%s: %w", k.namespace, name, err)
	}
	return nil
}
