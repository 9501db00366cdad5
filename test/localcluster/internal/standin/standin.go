// Package standin simulates programs that operators need and that would run in real containers:
// spark-submit, the Spark driver, the dashboard of a Ray cluster, and the executor of Argo. Each
// stand-in is a hidden command of localcluster, so that a cluster needs only one binary.
package standin

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

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
	client, err := kube.FromKubeconfig(os.Getenv("KUBECONFIG"))
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

// followPods passes pods and their changes to a handler until the context ends.
func followPods(ctx context.Context, client *kube.Client, selector string, handle func(context.Context, kube.Change[pod]) error) {
	follower := kube.Follower[pod]{
		Client: client, Path: "/api/v1/pods", Selector: selector, Handle: handle,
		Say: func(err error) { fmt.Fprintln(os.Stderr, err) },
	}
	follower.Run(ctx)
}

// endPod ends a pod with an exit code. A missing pod is no error.
func endPod(ctx context.Context, client *kube.Client, path string, exitCode int) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"1ms",%q:"%d"}}}`, runTimeAnnotation, exitCodeAnnotation, exitCode)
	err := client.Do(ctx, http.MethodPatch, path, "application/merge-patch+json", patch, nil)
	if kube.HasCode(err, http.StatusNotFound) {
		return nil
	}
	return err
}
