package podrunner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"kube-queue.dev/kube-queue/pkg/follow"
	"kube-queue.dev/kube-queue/test/clustertest"
)

// Annotation is the annotation of pods that a Runner runs. Its value is Own.
const (
	Annotation = "localcluster.kube-queue.dev/kubelet"
	Own        = "own"
)

// Options of a Runner.
type Options struct {
	Cluster *clustertest.Cluster
	// Programs is the folder of the programs.
	Programs string
	// Releases are the folders of programs of other releases, by the tags of their images.
	Releases map[string]string
	// Folder is an existing folder for the log and the kubeconfig of each pod.
	Folder string
	// IPv6 gives the pods IPv6 addresses.
	IPv6 bool
}

// folderOf returns the folder of the programs of images with this tag.
func (o Options) folderOf(tag string) string {
	if folder, known := o.Releases[tag]; known {
		return folder
	}
	return o.Programs
}

// Runner runs pods.
type Runner struct {
	options Options
	client  kubernetes.Interface

	block *block

	mu    sync.Mutex
	pods  map[types.UID]*pod
	group sync.WaitGroup
	errs  []error
}

// New returns a Runner for the namespace of kube-queue.
func New(options Options) (*Runner, error) {
	client, err := kubernetes.NewForConfig(options.Cluster.Config())
	if err != nil {
		return nil, fmt.Errorf("making a client for the pods: %w", err)
	}
	addresses, err := reserve(options.IPv6)
	if err != nil {
		return nil, fmt.Errorf("addresses of the pods: %w", err)
	}
	return &Runner{options: options, client: client, block: addresses, pods: map[types.UID]*pod{}}, nil
}

// Run runs pods until ctx is done, and then ends their processes. It returns errors of the Runner,
// not of the programs. A Runner runs once.
func (r *Runner) Run(ctx context.Context) error {
	defer r.block.release()
	source := cache.NewListWatchFromClient(r.client.CoreV1().RESTClient(), "pods", clustertest.Namespace, fields.Everything())
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: source, ObjectType: &corev1.Pod{},
		Handler: follow.Handler(func(p *corev1.Pod) { r.see(ctx, p) }, func(p *corev1.Pod) { r.end(p.UID) }),
	})
	informer.RunWithContext(ctx)
	r.group.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.errs...)
}

// see starts a pod when it has a node, and ends it when it is being deleted.
func (r *Runner) see(ctx context.Context, object *corev1.Pod) {
	if object.Annotations[Annotation] != Own || object.Spec.NodeName == "" {
		return
	}
	if object.DeletionTimestamp != nil {
		r.end(object.UID)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pods[object.UID] != nil || ctx.Err() != nil {
		return
	}
	p := &pod{
		runner: r, object: object.DeepCopy(), stop: make(chan struct{}),
		folder: filepath.Join(r.options.Folder, object.Name),
	}
	var err error
	if p.ip, p.address, err = r.block.next(); err != nil {
		r.errs = append(r.errs, fmt.Errorf("pod %s: %w", object.Name, err))
		return
	}
	r.pods[object.UID] = p
	r.group.Go(func() {
		err := p.run(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.errs = append(r.errs, fmt.Errorf("pod %s: %w", object.Name, err))
	})
}

// end stops the process of a pod. The pod stays in the map, so that it is not started again.
func (r *Runner) end(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pods[uid]; p != nil && !p.ending {
		p.ending = true
		close(p.stop)
	}
}

// Kill kills the process of a pod, as when its node runs out of memory. The process is started again.
func (r *Runner) Kill(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pods {
		if p.object.Name == name && p.process != nil {
			return p.process.Kill()
		}
	}
	return fmt.Errorf("no process of pod %s is running", name)
}

// Log returns the output of a pod's program.
func (r *Runner) Log(pod string) (string, error) {
	text, err := os.ReadFile(filepath.Join(r.options.Folder, pod, "log"))
	if err != nil {
		return "", fmt.Errorf("the log of pod %s: %w", pod, err)
	}
	return string(text), nil
}
