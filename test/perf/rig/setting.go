package rig

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"kube-queue.dev/kube-queue/pkg/controller/reviews"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/perf/pace"
)

// makers is the number of concurrent requests during preparation.
const makers = 16

// MakeNamespaces creates the namespaces that do not exist.
func (r *Rig) MakeNamespaces(ctx context.Context, names []string) error {
	client, err := kubernetes.NewForConfig(r.Cluster.Config())
	if err != nil {
		return err
	}
	return pace.Each(ctx, len(names), makers, func(ctx context.Context, i int) error {
		_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names[i]}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("namespace %s: %w", names[i], err)
		}
		return nil
	})
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

// InstallReviews installs only what reviews need of the policies.
func (r *Rig) InstallReviews(ctx context.Context) error {
	_, err := r.Cluster.Kubectl(ctx, "apply", "--server-side", "-f", filepath.Join(r.Cluster.Repository, "deploy", "policies", "reviews.yaml"))
	return err
}

// AnswersReviews returns the arguments with which kube-queue-controller answers reviews. A route leads to it. The address
// that it writes into the EndpointSlice is one that no machine has.
func (r *Rig) AnswersReviews(ctx context.Context) (args []string, err error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if err := r.Cluster.Route(ctx, clustertest.Namespace+"/"+reviews.Service+":443", address); err != nil {
		return nil, err
	}
	return []string{"--webhook-bind-address=" + address, "--webhook-advertise-address=192.0.2.1:" + port}, nil
}

// RunPlugin runs the kubectl plugin as the administrator. It returns what the plugin has printed, and how
// long it took from the start of the process to its end.
func (r *Rig) RunPlugin(ctx context.Context, args ...string) (out, errs string, took time.Duration, err error) {
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(ctx, filepath.Join(r.programs, Plugin), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+r.Cluster.Kubeconfig)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	err = cmd.Run()
	return stdout.String(), stderr.String(), time.Since(began), err
}
