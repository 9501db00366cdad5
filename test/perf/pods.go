package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
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

// podsRun is the command pods.
type podsRun struct {
	// changes is the number of status changes per pod, and idle is how long nothing happens.
	pods, changes int
	idle          time.Duration

	*session
}

func (p *podsRun) addFlags(flags *pflag.FlagSet) {
	flags.IntVar(&p.pods, "pods", 100_000, fmt.Sprintf("`NUMBER` of pods, a multiple of %d", podsPerUnit))
}

func (p *podsRun) parts() ([]part, error) {
	if p.pods < podsPerUnit || p.pods%podsPerUnit != 0 {
		return nil, fmt.Errorf("--pods %d: must be a multiple of %d", p.pods, podsPerUnit)
	}
	p.changes = min(p.changes, p.pods)
	// Only the programs may write units that hold quota.
	return []part{{apiOnly(true), p.run}}, nil
}

func (p *podsRun) run(ctx context.Context, s *session) error {
	p.session = s
	if err := p.create(ctx); err != nil {
		return err
	}
	section := s.figures.Section("cluster")
	section.Count("pods", p.pods)
	section.Count("units", p.units())
	if _, err := s.Run(ctx, rig.Controller, nil); err != nil {
		return err
	}
	// The controller lists everything first.
	if err := s.WaitForNode(ctx, 5*time.Minute, "root", func(n quotav1beta1.ElasticQuotaNodeStatus) bool {
		return n.Used.Cpu().Value() == int64(p.pods) && n.Jobs == int32(p.units())
	}); err != nil {
		return err
	}
	for _, part := range []struct {
		name, unit string
		count      float64
		bar        rig.Bar
		do         func(context.Context) error
	}{
		{"idle", "ms a second", p.idle.Seconds(), rig.Bar{AtMost: new(10.0)}, func(ctx context.Context) error { return rig.Pass(ctx, p.idle) }}, // 1 % of a core
		{"changes of pods", "ms a change", float64(p.changes), rig.Bar{}, p.change},
	} {
		use, _, err := s.during(ctx, part.do)
		if err != nil {
			return err
		}
		section := s.figures.Section(part.name)
		section.Add("processor time of the controller", rig.Milliseconds(use[rig.Controller].CPU)/part.count, part.unit, part.bar)
		section.Add("memory of the controller", rig.MiB(use[rig.Controller].Resident), "MiB")
	}
	return nil
}

func (p *podsRun) units() int { return p.pods / podsPerUnit }

// jobOf returns the job of a unit.
func jobOf(unit int) v1alpha1.ConsumerReference {
	return v1alpha1.ConsumerReference{APIVersion: "batch/v1", Kind: "Job", Name: fmt.Sprintf("job-%05d", unit),
		Namespace: fmt.Sprintf("perf-%03d", unit/unitsPerNamespace), UID: types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", unit))}
}

// create creates all objects.
func (p *podsRun) create(ctx context.Context) error {
	var namespaces []string
	for unit := 0; unit < p.units(); unit += unitsPerNamespace {
		namespaces = append(namespaces, jobOf(unit).Namespace)
	}
	if err := p.MakeNamespaces(ctx, namespaces...); err != nil {
		return err
	}
	for _, namespace := range namespaces {
		_, err := p.Kube.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	if err := p.ApplyTree(ctx, quotav1beta1.ElasticQuotaNode{Name: "root", Namespaces: []string{"*"}}); err != nil {
		return err
	}
	if err := p.each(ctx, "units", p.units(), p.createUnit); err != nil {
		return err
	}
	return p.each(ctx, "pods", p.pods, p.createPod)
}

func (p *podsRun) createUnit(ctx context.Context, i int) error {
	unit, err := p.session.createUnit(ctx, jobOf(i), corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")})
	if err != nil {
		return err
	}
	unit.Status = v1alpha1.QueueUnitStatus{Phase: v1alpha1.PhaseRunning, Attempts: 1, Quota: "root"}
	_, err = p.Queue.SchedulingV1alpha1().QueueUnits(unit.Namespace).UpdateStatus(ctx, unit, metav1.UpdateOptions{})
	return err
}

func podName(i int) string { return fmt.Sprintf("pod-%06d", i) }

// createPod creates a pod that requests 1 CPU. It has the fields that an operator sets.
func (p *podsRun) createPod(ctx context.Context, i int) error {
	job := jobOf(i / podsPerUnit)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: podName(i), Labels: map[string]string{"batch.kubernetes.io/controller-uid": string(job.UID), "job-name": job.Name},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID, Controller: new(true)}}},
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, NodeName: fmt.Sprintf("node-%04d", i%1000),
			AutomountServiceAccountToken: new(false),
			Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/team/training:v1", Args: []string{"--epochs=10"},
				Env:       []corev1.EnvVar{{Name: "RANK", Value: fmt.Sprint(i % podsPerUnit)}, {Name: "WORLD_SIZE", Value: fmt.Sprint(podsPerUnit)}},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("4Gi")}}}}},
	}
	_, err := p.Kube.CoreV1().Pods(job.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

// change patches the status of pods as a kubelet does.
func (p *podsRun) change(ctx context.Context) error {
	return p.each(ctx, "changes", p.changes, func(ctx context.Context, i int) error {
		patch := []byte(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
		_, err := p.Kube.CoreV1().Pods(jobOf(i/podsPerUnit).Namespace).Patch(ctx, podName(i), types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	})
}
