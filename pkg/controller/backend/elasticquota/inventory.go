package elasticquota

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/pkg/follow"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/requests"
)

const (
	// settleTime is how long to wait after a change of the tree before looking at the cluster, because namespaces are
	// often created together with the tree.
	settleTime = 3 * time.Second
	// askAgain is how often to read the nodes while the tree names a resource that no node has.
	askAgain = 5 * time.Minute
	// nodePage is the number of nodes per request. Only the names of their resources are kept.
	nodePage = 100
)

// inventory collects the facts that warnings about a tree need: which of its namespaces exist, and whether nodes have
// its resources. Decisions do not depend on it. It watches only the metadata of namespaces, and reads nodes only while
// the tree names an unusual resource. There are no warnings about objects that the controller may not read.
type inventory struct {
	clock clock.Clock
	// types are the resource names that settings define.
	types map[string]bool
	// nodes returns the names of the resources that nodes have.
	nodes func(context.Context) (map[string]bool, error)
	// namespaces returns which namespaces exist; nil if this is not known.
	namespaces func() func(string) bool
	// report passes on the known facts, if any. The goroutine of run calls it.
	report func(tree.Cluster)

	mu sync.Mutex
	// listed are the namespaces of the tree. unusual are the resources that the tree names and only nodes can explain.
	// Both are replaced, never modified.
	listed, unusual map[string]bool
	// fresh has an element if the tree has changed, and moved if one of its namespaces was created or deleted.
	fresh, moved chan struct{}
}

func newInventory(clock clock.Clock, rules requests.Rules, report func(tree.Cluster)) *inventory {
	return &inventory{clock: clock, types: namesOf(rules), report: report, fresh: make(chan struct{}, 1), moved: make(chan struct{}, 1)}
}

// namesOf returns the resource names that only the settings give to devices.
func namesOf(rules requests.Rules) map[string]bool {
	names := map[string]bool{}
	for _, name := range rules.Classes {
		names[string(name)] = true
	}
	for _, types := range rules.Types {
		names[string(types.Default)] = true
		for _, byValue := range types.Names {
			for _, name := range byValue {
				names[string(name)] = true
			}
		}
	}
	return names
}

// start starts watching namespaces and does not wait.
func (i *inventory) start(ctx context.Context, config *rest.Config) error {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("watching namespaces: %w", err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("reading nodes: %w", err)
	}
	i.nodes = func(ctx context.Context) (map[string]bool, error) { return resourcesOfNodes(ctx, kube) }
	informer := metadatainformer.NewFilteredMetadataInformer(client, corev1.SchemeGroupVersion.WithResource("namespaces"),
		metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	if err := informer.SetTransform(nameOnly); err != nil {
		return fmt.Errorf("watching namespaces: %w", err)
	}
	if _, err := follow.Tolerate(informer, apierrors.IsForbidden, func(ctx context.Context, err error) {
		klog.FromContext(ctx).Info("Namespaces may not be watched, so a quota tree that lists one that does not exist gets no warning", "reason", err.Error())
	}); err != nil {
		return fmt.Errorf("watching namespaces: %w", err)
	}
	see := func(namespace *metav1.PartialObjectMetadata) { i.see(namespace.Name) }
	comesOrGoes := follow.Changes(func(_, _ *metav1.PartialObjectMetadata) bool { return true }, see, see)
	registered, err := informer.AddEventHandler(comesOrGoes)
	if err != nil {
		return fmt.Errorf("watching namespaces: %w", err)
	}
	names, synced := informer.GetStore(), registered.HasSynced
	i.namespaces = func() func(string) bool {
		if !synced() {
			return nil
		}
		return func(name string) bool {
			_, exists, _ := names.GetByKey(name)
			return exists
		}
	}
	go informer.RunWithContext(ctx)
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), synced) { // follow may have set the namespaces of the tree before
			follow.Wake(i.moved)
		}
	}()
	go i.run(ctx)
	return nil
}

// nameOnly keeps only the name of a namespace.
func nameOnly(o any) (any, error) {
	if namespace, is := o.(*metav1.PartialObjectMetadata); is {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: namespace.Name, ResourceVersion: namespace.ResourceVersion}}, nil
	}
	return o, nil
}

// resourcesOfNodes returns the names of the resources that any node has.
func resourcesOfNodes(ctx context.Context, kube kubernetes.Interface) (map[string]bool, error) {
	names := map[string]bool{}
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (list runtime.Object, err error) {
		return kube.CoreV1().Nodes().List(ctx, options)
	})
	pages.PageSize = nodePage
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		if node, is := o.(*corev1.Node); is {
			for name := range node.Status.Capacity {
				names[string(name)] = true
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading nodes: %w", err)
	}
	return names, nil
}

// follow sets the tree to collect facts for; nil if there is none.
func (i *inventory) follow(root *tree.Node) {
	listed, unusual := map[string]bool{}, map[string]bool{}
	if root != nil {
		tree.Warnings(*root, tree.Cluster{
			HasNamespace: func(name string) bool { listed[name] = true; return true },
			HasResource:  func(name string) bool { unusual[name] = true; return true },
		})
	}
	i.mu.Lock()
	i.listed, i.unusual = listed, unusual
	i.mu.Unlock()
	follow.Wake(i.fresh)
}

// see notes that a namespace was created or deleted.
func (i *inventory) see(name string) {
	i.mu.Lock()
	listed := i.listed[name]
	i.mu.Unlock()
	if listed {
		follow.Wake(i.moved)
	}
}

func (i *inventory) run(ctx context.Context) {
	var again <-chan time.Time
	var resources map[string]bool
	for {
		readNodes := true
		select {
		case <-ctx.Done():
			return
		case <-i.fresh:
			select {
			case <-ctx.Done():
				return
			case <-i.clock.After(settleTime):
			}
		case <-i.moved:
			readNodes = false
		case <-again:
		}
		i.mu.Lock()
		unusual := i.unusual
		i.mu.Unlock()
		if readNodes {
			resources, again = i.resources(ctx, unusual), nil
			if lacksAny(resources, unusual) {
				again = i.clock.After(askAgain)
			}
		}
		i.reportWith(resources)
	}
}

// lacksAny reports whether any of the names is missing.
func lacksAny(known, names map[string]bool) bool {
	for name := range names {
		if !known[name] {
			return true
		}
	}
	return false
}

// reportWith reports the existing namespaces and these resources; nil if they are not known.
func (i *inventory) reportWith(resources map[string]bool) {
	known := tree.Cluster{HasNamespace: i.namespaces()}
	if resources != nil {
		known.HasResource = func(name string) bool { return resources[name] }
	}
	if known.HasNamespace != nil || known.HasResource != nil {
		i.report(known)
	}
}

// resources returns the resource names of nodes and settings; nil if they are not known or not needed.
func (i *inventory) resources(ctx context.Context, needed map[string]bool) map[string]bool {
	if len(needed) == 0 {
		return nil
	}
	names, err := i.nodes(ctx)
	if err != nil {
		if ctx.Err() == nil {
			klog.FromContext(ctx).Info("Nodes cannot be read, so a quota tree that names a resource that none of them has gets no warning", "reason", err.Error())
		}
		return nil
	}
	if len(names) == 0 { // later nodes can have any resource
		return nil
	}
	maps.Copy(names, i.types)
	return names
}
