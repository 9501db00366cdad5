package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/generated/clientset/versioned"
	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/perf/rig"
)

const podsHelp = `
Creates pods of running units, starts kube-queue-controller, and measures its memory, its
processor time while nothing happens, and that of a change of a pod's status, as a kubelet
writes it. The status of the quota tree must then show exactly what the pods request.`

// Pods belong to units of podsPerUnit pods, in namespaces of unitsPerNamespace units.
const (
	podsPerUnit       = 100
	unitsPerNamespace = 50
)

// podsFlags are the flags of the command pods.
type podsFlags struct {
	pods, changes, inFlight int
	idle                    time.Duration
	keep                    bool
}

func podsCommand() command {
	return command{
		name: "pods", summary: "measure kube-queue-controller in a cluster with many pods", help: podsHelp,
		prepare: func(flags *pflag.FlagSet) measure {
			f := &podsFlags{}
			flags.IntVar(&f.pods, "pods", 100_000, fmt.Sprintf("`NUMBER` of pods, a multiple of %d", podsPerUnit))
			flags.IntVar(&f.changes, "changes", 5_000, "`NUMBER` of changes of the status of a pod")
			flags.DurationVar(&f.idle, "idle", time.Minute, "`TIME` for which nothing happens")
			flags.IntVar(&f.inFlight, "in-flight", 32, "`NUMBER` of concurrent requests")
			flags.BoolVar(&f.keep, "keep", false, "keep the logs of the cluster and the controller and print their folder")
			return f.measure
		},
	}
}

func (f *podsFlags) measure(ctx context.Context, progress io.Writer) (*report.Report, error) {
	if f.pods < podsPerUnit || f.pods%podsPerUnit != 0 {
		return nil, fmt.Errorf("%w: pods: --pods %d: must be a multiple of %d", errUsage, f.pods, podsPerUnit)
	}
	if f.changes < 0 || f.changes > f.pods || f.inFlight < 1 || f.idle < time.Second {
		return nil, fmt.Errorf("%w: pods: --changes must be from 0 to --pods, --in-flight 1 or more, and --idle 1s or more", errUsage)
	}
	// Only the programs may write units that hold quota.
	return withRig(ctx, rig.Options{OnlyAPI: true, WithoutPolicies: true, Log: progress}, f.keep, progress,
		func(ctx context.Context, r *rig.Rig) (*report.Report, error) {
			run, err := f.prepare(r, progress)
			if err != nil {
				return nil, err
			}
			return run.measure(ctx)
		})
}

// podsRun is one run on a rig.
type podsRun struct {
	*podsFlags
	rig      *rig.Rig
	kube     kubernetes.Interface
	queue    versioned.Interface
	progress io.Writer
}

func (f *podsFlags) prepare(r *rig.Rig, progress io.Writer) (*podsRun, error) {
	config := r.Cluster.Config()
	config.QPS = -1
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	queue, err := versioned.NewForConfig(config)
	return &podsRun{f, r, kube, queue, progress}, err
}

func (p *podsRun) measure(ctx context.Context) (*report.Report, error) {
	if err := p.create(ctx); err != nil {
		return nil, err
	}
	figures := report.New("pods", "", p.rig.Version, nil)
	figures.Section("cluster").Count("pods", p.pods)
	figures.Section("cluster").Count("units", p.units())
	began := time.Now()
	controller, err := p.rig.Run(ctx, rig.Controller)
	if err != nil {
		return nil, err
	}
	if err := p.waitForUsed(ctx); err != nil {
		return nil, err
	}
	figures.Section("start").Add("until the tree shows what the pods use", time.Since(began).Seconds(), "s", nil)
	if err := p.part(ctx, figures, "idle", func(ctx context.Context) (float64, string, error) {
		select {
		case <-ctx.Done():
			return 0, "", context.Cause(ctx)
		case <-time.After(p.idle):
			return p.idle.Seconds(), "ms a second", nil
		}
	}); err != nil {
		return nil, err
	}
	if err := p.part(ctx, figures, "changes of pods", func(ctx context.Context) (float64, string, error) {
		return float64(p.changes), "ms a change", p.change(ctx)
	}); err != nil {
		return nil, err
	}
	return figures, controller.Stop()
}

// part adds what the controller uses meanwhile. what returns by how much to divide the processor time, and
// the unit of the result.
func (p *podsRun) part(ctx context.Context, figures *report.Report, name string, what func(context.Context) (float64, string, error)) error {
	before, err := p.rig.Use()
	if err != nil {
		return err
	}
	count, unit, err := what(ctx)
	if err != nil {
		return err
	}
	after, err := p.rig.Use()
	if err != nil {
		return err
	}
	use := after.Since(before)[rig.Controller]
	section := figures.Section(name)
	var bar *report.Bar
	if name == "idle" {
		bar = report.AtMost(10) // 1 % of a core
	}
	section.Add("processor time of the controller", report.Milliseconds(use.CPU)/max(count, 1), unit, bar)
	section.Add("memory of the controller", report.MiB(use.Resident), "MiB", nil)
	section.Add("peak", report.MiB(use.Peak), "MiB", nil)
	return nil
}

func (p *podsRun) units() int { return p.pods / podsPerUnit }

func namespaceOf(unit int) string { return fmt.Sprintf("perf-%03d", unit/unitsPerNamespace) }

func uidOf(unit int) types.UID { return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", unit)) }

// create creates all objects.
func (p *podsRun) create(ctx context.Context) error {
	var namespaces []string
	for unit := 0; unit < p.units(); unit += unitsPerNamespace {
		namespaces = append(namespaces, namespaceOf(unit))
	}
	if err := p.rig.MakeNamespaces(ctx, namespaces); err != nil {
		return err
	}
	if err := p.each(ctx, "service accounts", len(namespaces), func(ctx context.Context, i int) error {
		_, err := p.kube.CoreV1().ServiceAccounts(namespaces[i]).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}); err != nil {
		return err
	}
	tree := []byte(`{"apiVersion":"scheduling.sigs.k8s.io/v1beta1","kind":"ElasticQuotaTree","metadata":{"name":"perf","namespace":"kube-system"},"spec":{"root":{"name":"root","namespaces":["*"]}}}`)
	if err := p.rig.ApplyTree(ctx, tree); err != nil {
		return err
	}
	if err := p.each(ctx, "units", p.units(), p.createUnit); err != nil {
		return err
	}
	return p.each(ctx, "pods", p.pods, p.createPod)
}

func (p *podsRun) createUnit(ctx context.Context, i int) error {
	api := p.queue.SchedulingV1alpha1().QueueUnits(namespaceOf(i))
	unit, err := api.Create(ctx, &v1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("job-%05d", i)},
		Spec: v1alpha1.QueueUnitSpec{
			ConsumerRef: v1alpha1.ConsumerReference{APIVersion: "batch/v1", Kind: "Job", Name: fmt.Sprintf("job-%05d", i), Namespace: namespaceOf(i), UID: uidOf(i)},
			Resource:    corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
		}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	unit.Status = v1alpha1.QueueUnitStatus{Phase: v1alpha1.PhaseRunning, Attempts: 1, Quota: "root"}
	_, err = api.UpdateStatus(ctx, unit, metav1.UpdateOptions{})
	return err
}

func podName(i int) string { return fmt.Sprintf("pod-%06d", i) }

// createPod creates a pod that requests 1 CPU. It has the fields that an operator sets.
func (p *podsRun) createPod(ctx context.Context, i int) error {
	unit := i / podsPerUnit
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: podName(i), Labels: map[string]string{"batch.kubernetes.io/controller-uid": string(uidOf(unit)), "job-name": fmt.Sprintf("job-%05d", unit)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: fmt.Sprintf("job-%05d", unit), UID: uidOf(unit), Controller: ptr.To(true)}}},
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, NodeName: fmt.Sprintf("node-%04d", i%1000),
			AutomountServiceAccountToken: ptr.To(false),
			Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/team/training:v1", Args: []string{"--epochs=10"},
				Env:       []corev1.EnvVar{{Name: "RANK", Value: fmt.Sprint(i % podsPerUnit)}, {Name: "WORLD_SIZE", Value: fmt.Sprint(podsPerUnit)}},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("4Gi")}}}}},
	}
	_, err := p.kube.CoreV1().Pods(namespaceOf(unit)).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

// change patches the status of pods as a kubelet does.
func (p *podsRun) change(ctx context.Context) error {
	return p.each(ctx, "changes", p.changes, func(ctx context.Context, i int) error {
		patch := []byte(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
		_, err := p.kube.CoreV1().Pods(namespaceOf(i/podsPerUnit)).Patch(ctx, podName(i), types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	})
}

// each calls do for each index, with a number of calls at a time.
func (p *podsRun) each(ctx context.Context, what string, count int, do func(context.Context, int) error) error {
	return concurrently(ctx, p.progress, p.inFlight, what, count, do)
}

// concurrently calls do for each index, with so many calls at a time, and reports the progress.
func concurrently(ctx context.Context, progress io.Writer, inFlight int, what string, count int, do func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next, done atomic.Int64
	stop := every(progressPeriod, func() { fmt.Fprintf(progress, "%s: %d of %d\n", what, done.Load(), count) })
	defer stop()
	var group sync.WaitGroup
	for range inFlight {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < count && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := do(ctx, i); err != nil {
					cancel(fmt.Errorf("%s, number %d: %w", what, i, err))
					return
				}
				done.Add(1)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// usedTimeout is how long the controller may take to list everything.
const usedTimeout = 5 * time.Minute

var errNotYet = errors.New("the tree does not show what the pods use")

// waitForUsed waits until the status of the tree shows what the pods request.
func (p *podsRun) waitForUsed(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, usedTimeout, errNotYet)
	defer cancel()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		tree, err := p.queue.QuotaV1beta1().ElasticQuotaTrees(quotav1beta1.TreeNamespace).Get(ctx, "perf", metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading the quota tree: %w", err)
		}
		if nodes := tree.Status.Nodes; len(nodes) == 1 && nodes[0].Used.Cpu().Value() == int64(p.pods) && nodes[0].Jobs == int32(p.units()) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}
