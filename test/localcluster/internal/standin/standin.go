// Package standin simulates programs that operators need and that would run in real containers:
// spark-submit, the Spark driver, the dashboard of a Ray cluster, and the executor of Argo. Each
// stand-in is a hidden command of localcluster, so that a cluster needs only one binary.
package standin

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	"kube-queue.dev/kube-queue/test/localcluster/internal/kube"
)

// Command is the first argument of localcluster that starts a stand-in. The name of the stand-in
// and its arguments follow.
const Command = "stand-in"

// Annotations that set the run time and the exit code of a pod. On a RayJob they apply to its
// entrypoint.
const (
	runTimeAnnotation  = "localcluster.kube-queue.dev/run-time"
	exitCodeAnnotation = "localcluster.kube-queue.dev/exit-code"
)

// programs has the stand-ins by name. Servers end with their context.
var programs = map[string]func(context.Context, *kube.Client, []string) error{
	ArgoExecutor: serveArgoExecutor,
	RayDashboard: serveRayDashboard,
	SparkDriver:  serveSparkDrivers,
	SparkSubmit:  submitSpark,
}

// Run runs a stand-in as the user of $KUBECONFIG.
func Run(ctx context.Context, name string, args []string) error {
	program, known := programs[name]
	if !known {
		return fmt.Errorf("unknown stand-in %q; known stand-ins: %s", name, strings.Join(slices.Sorted(maps.Keys(programs)), ", "))
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	var client *kube.Client
	if err == nil {
		client, err = kube.New(config)
	}
	if err == nil {
		err = program(ctx, client, args)
	}
	if err != nil {
		return fmt.Errorf("stand-in %s: %w", name, err)
	}
	return nil
}

type object = map[string]any

// metadata has the needed fields of an object.
type metadata struct {
	Name              string            `json:"name,omitempty"`
	Namespace         string            `json:"namespace,omitempty"`
	UID               string            `json:"uid,omitempty"`
	ResourceVersion   string            `json:"resourceVersion,omitempty"`
	DeletionTimestamp string            `json:"deletionTimestamp,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Annotations       map[string]string `json:"annotations,omitempty"`
	OwnerReferences   []object          `json:"ownerReferences,omitempty"`
}

// pod has the needed fields of a pod.
type pod struct {
	Metadata metadata
	Spec     struct {
		InitContainers, Containers []struct {
			Name string
			Env  []struct{ Name, Value string }
		}
	}
	Status struct {
		Phase             string
		StartTime         time.Time
		Conditions        []struct{ Type, Message string }
		ContainerStatuses []object
	}
}

func podsPath(namespace string) string { return "/api/v1/namespaces/" + namespace + "/pods" }

func (p *pod) path() string { return podsPath(p.Metadata.Namespace) + "/" + p.Metadata.Name }

func (p *pod) ended() bool { return p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed" }

// listPods returns the pods of a namespace with these labels.
func listPods(ctx context.Context, client *kube.Client, namespace string, with map[string]string) ([]pod, error) {
	var list struct{ Items []pod }
	query := url.Values{"labelSelector": {labels.Set(with).String()}}
	err := client.Get(ctx, podsPath(namespace)+"?"+query.Encode(), &list)
	return list.Items, err
}

// report logs an error that is retried.
func report(err error) { fmt.Fprintln(os.Stderr, err) }

// endPod ends a pod with an exit code. A missing pod is no error.
func endPod(ctx context.Context, client *kube.Client, path string, exitCode int) error {
	annotations := object{runTimeAnnotation: "1ms", exitCodeAnnotation: strconv.Itoa(exitCode)}
	err := client.Patch(ctx, path, types.MergePatchType, object{"metadata": object{"annotations": annotations}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
