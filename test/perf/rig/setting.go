package rig

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	"kube-queue.dev/kube-queue/test/perf/pace"
)

// InFlight is the number of concurrent requests that saturate the API server.
const InFlight = 32

// MakeNamespaces creates the namespaces that do not exist.
func (r *Rig) MakeNamespaces(ctx context.Context, names ...string) error {
	return pace.Each(ctx, InFlight, len(names), func(ctx context.Context, i int) error {
		_, err := r.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names[i]}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("namespace %s: %w", names[i], err)
		}
		return nil
	})
}

// treeName is the name of the only quota tree.
const treeName = "perf"

// ApplyTree applies the quota tree with this root.
func (r *Rig) ApplyTree(ctx context.Context, root quotav1beta1.ElasticQuotaNode) error {
	tree := &quotav1beta1.ElasticQuotaTree{
		TypeMeta:   metav1.TypeMeta{APIVersion: quotav1beta1.SchemeGroupVersion.String(), Kind: "ElasticQuotaTree"},
		ObjectMeta: metav1.ObjectMeta{Name: treeName, Namespace: quotav1beta1.TreeNamespace},
		Spec:       quotav1beta1.ElasticQuotaTreeSpec{Root: root},
	}
	manifest, err := json.Marshal(tree)
	if err != nil {
		return fmt.Errorf("the quota tree: %w", err)
	}
	_, err = r.Queue.QuotaV1beta1().ElasticQuotaTrees(tree.Namespace).Patch(ctx, treeName, types.ApplyPatchType, manifest,
		metav1.PatchOptions{FieldManager: Tool, Force: new(true)})
	return err
}

// WaitForNode waits until the status of the quota tree shows a node, by its path, as it should be.
func (r *Rig) WaitForNode(ctx context.Context, timeout time.Duration, path string, so func(quotav1beta1.ElasticQuotaNodeStatus) bool) error {
	late := fmt.Errorf("the status of the quota tree does not show %s as it should be after %v", path, timeout)
	return pace.Until(ctx, time.Second, timeout, late, func(ctx context.Context) (bool, error) {
		tree, err := r.Queue.QuotaV1beta1().ElasticQuotaTrees(quotav1beta1.TreeNamespace).Get(ctx, treeName, metav1.GetOptions{})
		if err != nil {
			return false, fmt.Errorf("reading the quota tree: %w", err)
		}
		for _, node := range tree.Status.Nodes {
			if node.Path == path {
				return so(node), nil
			}
		}
		return false, nil
	})
}

// AnswersReviews installs what reviews need of the policies, and returns the arguments with which
// kube-queue-controller answers reviews at the address.
func (r *Rig) AnswersReviews(ctx context.Context) (address string, args []string, err error) {
	if _, err := r.Cluster.Kubectl(ctx, "apply", "--server-side", "--force-conflicts",
		"-f", filepath.Join(r.Cluster.Repository, "deploy", "policies", "reviews.yaml")); err != nil {
		return "", nil, err
	}
	return r.Cluster.RouteReviews(ctx)
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
