package gangs

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"kube-queue.dev/kube-queue/pkg/follow"
	"kube-queue.dev/kube-queue/test/require"
)

// patience is how long the watches may lag behind the API server.
const patience = time.Minute

// Follower shows a Checker the pods and nodes of a cluster.
type Follower struct {
	Checker
	client kubernetes.Interface

	mu sync.Mutex
	// seen has the last version of each object that the Checker was shown.
	seen map[types.UID]string
}

// Follow follows the cluster until the end of the test, and then fails the test for each violation.
func Follow(t testing.TB, client kubernetes.Interface, gangs ...Gang) {
	t.Helper()
	f := &Follower{client: client, seen: map[types.UID]string{}}
	for _, gang := range gangs {
		require.NoError(t, f.Expect(gang))
	}
	// The context of the test is done before its cleanup.
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	stop, err := f.start(ctx)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer stop()
		defer cancel()
		violations, err := f.Check(ctx)
		if err != nil {
			t.Error(err)
		}
		for _, v := range violations {
			t.Error(v)
		}
	})
}

// start follows the cluster until ctx is done. It returns when the existing objects have been
// processed, with a function that waits for the end after ctx is done.
func (f *Follower) start(ctx context.Context) (stop func(), err error) {
	factory := informers.NewSharedInformerFactory(f.client, 0)
	core := factory.Core().V1()
	podsDone, err := shows(f, core.Pods().Informer(), func(p *corev1.Pod) { f.Pod(time.Now(), p) }, f.PodGone)
	if err != nil {
		return nil, fmt.Errorf("following pods: %w", err)
	}
	nodesDone, err := shows(f, core.Nodes().Informer(), f.Node, f.NodeGone)
	if err != nil {
		return nil, fmt.Errorf("following nodes: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), podsDone, nodesDone) {
		return nil, fmt.Errorf("following pods and nodes: %w", context.Cause(ctx))
	}
	return factory.Shutdown, nil
}

// shows passes each version of an informer's objects, and their ends, to the Checker.
func shows[T metav1.Object](f *Follower, informer cache.SharedInformer, see, end func(T)) (synced cache.InformerSynced, err error) {
	shown := func(show func(T)) func(T) {
		return func(o T) {
			show(o)
			f.note(o)
		}
	}
	return follow.Objects(informer, shown(see), shown(end))
}

// Check waits until the watches have caught up with the API server, and returns the violations so far.
func (f *Follower) Check(ctx context.Context) ([]Violation, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("the watches of pods and nodes lag behind by more than %v", patience))
	defer cancel()
	pods, err := f.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	nodes, err := f.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	var listed []metav1.Object
	for i := range pods.Items {
		listed = append(listed, &pods.Items[i])
	}
	for i := range nodes.Items {
		listed = append(listed, &nodes.Items[i])
	}
	err = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		return f.shown(listed), nil
	})
	if err != nil {
		return nil, context.Cause(ctx)
	}
	return f.Violations(), nil
}

func (f *Follower) note(object metav1.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[object.GetUID()] = object.GetResourceVersion()
}

// shown reports whether the Checker was shown these versions of the objects, or later ones.
func (f *Follower) shown(objects []metav1.Object) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, object := range objects {
		seen, known := f.seen[object.GetUID()]
		if !known || before(seen, object.GetResourceVersion()) {
			return false
		}
	}
	return true
}
