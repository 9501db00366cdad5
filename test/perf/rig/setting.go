package rig

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"kube-queue.dev/kube-queue/test/perf/trail"
)

// makers is the number of concurrent requests during preparation.
const makers = 16

// MakeNamespaces creates the namespaces that do not exist.
func (r *Rig) MakeNamespaces(ctx context.Context, names []string) error {
	client, err := kubernetes.NewForConfig(r.Cluster.Config())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan string)
	var group sync.WaitGroup
	for range makers {
		group.Go(func() {
			for name := range work {
				namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
				if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
					cancel(fmt.Errorf("namespace %s: %w", name, err))
				}
			}
		})
	}
	for _, name := range names {
		work <- name
	}
	close(work)
	group.Wait()
	return context.Cause(ctx)
}

// ApplyTree applies a quota tree.
func (r *Rig) ApplyTree(ctx context.Context, manifest []byte) error {
	client, err := dynamic.NewForConfig(r.Cluster.Config())
	if err != nil {
		return err
	}
	tree := &unstructured.Unstructured{}
	if err := tree.UnmarshalJSON(manifest); err != nil {
		return fmt.Errorf("the quota tree: %w", err)
	}
	trees := schema.GroupVersionResource{Group: "scheduling.sigs.k8s.io", Version: "v1beta1", Resource: "elasticquotatrees"}
	_, err = client.Resource(trees).Namespace(tree.GetNamespace()).Apply(ctx, tree.GetName(), tree, metav1.ApplyOptions{FieldManager: Tool, Force: true})
	return err
}

// GiveUpLease deletes the lease of a killed program. Otherwise the next process waits up to 15 s
// until the lease expires.
func (r *Rig) GiveUpLease(ctx context.Context, name string) error {
	_, err := r.Cluster.Kubectl(ctx, "delete", "lease", name, "--namespace=kube-queue")
	return err
}

// ReadTrail visits the entries of the audit log up to now.
func (r *Rig) ReadTrail(ctx context.Context, log *trail.Log, visit func(*trail.Entry)) error {
	client, err := kubernetes.NewForConfig(r.Cluster.Config())
	if err != nil {
		return err
	}
	marker, err := client.CoreV1().ConfigMaps("default").Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("marker-%d", time.Now().UnixNano())}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("marking the end in the audit log: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, fmt.Errorf("the audit log contains no write of ConfigMap %s; see %s", marker.Name, r.Cluster.AuditLog))
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for marked := false; ; {
		err := log.Read(func(e *trail.Entry) {
			if e.Resource == "configmaps" && strings.HasPrefix(e.Name, "marker-") {
				marked = marked || e.Name == marker.Name
				return
			}
			visit(e)
		})
		if err != nil || marked {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}
