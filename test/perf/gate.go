package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/perf/rig"
)

const gateHelp = `
Creates marked pods, which wait at the scheduling gate, and measures the time from the
request that creates a pod until it runs. Then creates unmarked pods, in turn without the
policies of pods and with them, and measures the requests.`

const gateNamespace = "perf-gate"

// gateRun is the command gate.
type gateRun struct {
	// pods is the number of marked pods, which are created at a rate per second. rounds is how often pods are created
	// without and with the policies.
	pods, rounds int
	rate         float64

	*session
}

func (g *gateRun) addFlags(flags *pflag.FlagSet) {
	flags.IntVar(&g.pods, "pods", 1200, "`NUMBER` of marked pods")
	flags.Float64Var(&g.rate, "rate", 20, "`NUMBER` of marked pods created per second")
	flags.IntVar(&g.rounds, "rounds", 16, "`NUMBER` of pairs of rounds of unmarked pods")
}

func (g *gateRun) parts() ([]part, error) {
	if g.pods < 1 || g.rounds < 1 || g.rate <= 0 {
		return nil, errors.New("--pods, --rate and --rounds must be positive")
	}
	options := clustertest.Options{Nodes: 20, NodeCPU: "256", NodeMemory: "1Ti", PodRunTime: time.Second}
	return []part{{rig.Options{Options: options}, g.run}}, nil
}

func (g *gateRun) run(ctx context.Context, s *session) error {
	g.session = s
	tree := quotav1beta1.ElasticQuotaNode{Name: "root", Namespaces: []string{gateNamespace}}
	err := errors.Join(s.MakeNamespaces(ctx, gateNamespace), s.ApplyTree(ctx, tree), g.policies(ctx, "rbac", true), g.policies(ctx, "policies", true))
	if err != nil {
		return err
	}
	if _, err := s.Run(ctx, rig.Controller, nil); err != nil {
		return err
	}
	if _, err := s.Run(ctx, rig.Extensions, nil, "--enabled-extensions=pod"); err != nil {
		return err
	}
	if err := rig.Pass(ctx, settle); err != nil {
		return err
	}
	if err := g.marked(ctx); err != nil {
		return err
	}
	return g.unmarked(ctx)
}

// settle is how long the API server may take to use policies.
const settle = 5 * time.Second

// policies applies or deletes a folder of deploy/pods.
func (g *gateRun) policies(ctx context.Context, folder string, on bool) error {
	args := []string{"delete", "--ignore-not-found"}
	if on {
		args = []string{"apply", "--server-side", "--force-conflicts"}
	}
	_, err := g.Cluster.Kubectl(ctx, append(args, "-f", filepath.Join("deploy", "pods", folder))...)
	return err
}

func gatePod(name string, annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: gateNamespace, Annotations: annotations},
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64),
			Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}}}}}}
}

// marked measures the time from the creation of each pod until it runs.
func (g *gateRun) marked(ctx context.Context) error {
	pods := g.Kube.CoreV1().Pods(gateNamespace)
	watch, err := pods.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer watch.Stop()
	var mu sync.Mutex
	created := map[string]time.Time{}
	create := func(ctx context.Context, i int) error {
		name := fmt.Sprintf("marked-%05d", i)
		mu.Lock()
		created[name] = time.Now()
		mu.Unlock()
		_, err := pods.Create(ctx, gatePod(name, map[string]string{wellknown.SuspendAnnotation: "true"}), metav1.CreateOptions{})
		return err
	}
	var took rig.Durations
	return rig.Beside(ctx, func(ctx context.Context) error {
		seen := map[string]bool{}
		for len(seen) < g.pods {
			select {
			case event := <-watch.ResultChan():
				pod, is := event.Object.(*corev1.Pod)
				if !is {
					return fmt.Errorf("the watch of pods ended: %v", event.Object)
				}
				if pod.Status.Phase == corev1.PodRunning && !seen[pod.Name] {
					seen[pod.Name] = true
					mu.Lock()
					took = append(took, time.Since(created[pod.Name]))
					mu.Unlock()
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		section := g.figures.Section("marked pods")
		section.Count("pods", g.pods)
		for _, p := range []float64{0.5, 0.9, 0.99} {
			section.Add(fmt.Sprintf("creation until it runs, p%g", p*100), rig.Milliseconds(took.Percentile(p)), "ms")
		}
		return nil
	}, func(ctx context.Context) error {
		return rig.InTime(ctx, time.Now(), rig.InFlight, g.pods, rig.Rate(g.rate), create)
	})
}

// perRound is the number of unmarked pods of each round.
const perRound = 300

// unmarked measures the requests that create unmarked pods.
func (g *gateRun) unmarked(ctx context.Context) error {
	pods := g.Kube.CoreV1().Pods(gateNamespace)
	took, rounds := map[bool]rig.Durations{}, map[bool]rig.Durations{}
	for round := range 2 * g.rounds {
		on := round%2 == 1
		if err := errors.Join(pods.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}), g.policies(ctx, "policies", on), rig.Pass(ctx, settle)); err != nil {
			return err
		}
		var one rig.Durations
		for i := range perRound { // one after another, so that no request waits for another
			began := time.Now()
			if _, err := pods.Create(ctx, gatePod(fmt.Sprintf("plain-%03d-%03d", round, i), nil), metav1.CreateOptions{}); err != nil {
				return err
			}
			one = append(one, time.Since(began))
		}
		took[on] = append(took[on], one...)
		rounds[on] = append(rounds[on], one.Percentile(0.99))
	}
	for _, on := range []bool{false, true} {
		section := g.figures.Section(map[bool]string{false: "unmarked pods without the policies", true: "unmarked pods with the policies"}[on])
		section.Count("pods", len(took[on]))
		for _, p := range []float64{0.5, 0.99} {
			section.Add(fmt.Sprintf("creation, p%g", p*100), rig.Milliseconds(took[on].Percentile(p)), "ms")
		}
		section.Add("creation, lowest p99 of a round", rig.Milliseconds(rounds[on].Percentile(0)), "ms")
		section.Add("creation, highest p99 of a round", rig.Milliseconds(rounds[on].Percentile(1)), "ms")
	}
	return nil
}
