package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	visibilityv1alpha1 "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/freeport"
	"kube-queue.dev/kube-queue/test/perf/rig"
	"kube-queue.dev/kube-queue/test/require"
	"kube-queue.dev/kube-queue/test/testmode"
)

// The flood: slow clients on each webhook port, and the cost that is allowed. longest only ends a test that hangs;
// the measured times are logged. largeJob is the size of a job in bytes. With the managed fields, it reaches the 1.5
// MiB that etcd accepts. patience is how long the programs may take to show a change.
const (
	slowClients = 200
	floodTime   = time.Minute
	mostMore    = 64 << 20
	longest     = 10 * time.Second
	largeJob    = 1_450_000
	patience    = 6 * time.Minute
)

const floodNamespace = "perf-flood"

// The programs run as in production, so users see this memory and these times.
func TestAFloodOfSlowClientsStopsNothing(t *testing.T) {
	testmode.OnlyInTestAll(t, "TestGenuineRequestsAreAnsweredBesideSlowOnes of pkg/program/serving counts what slow clients use")
	r := startRig(t, rig.Options{Options: clustertest.Options{OnlyAPI: true, HoldBy: clustertest.HoldByWebhook}})
	// Reviews are off where webhooks hold jobs, so add what answers them.
	_, err := r.Cluster.Kubectl(t.Context(), "apply", "--server-side", "--force-conflicts",
		"-f", filepath.Join(r.Cluster.Repository, "deploy", "rbac", "kube-queue-controller.yaml"))
	require.NoError(t, err)
	f := &flood{t: t, session: &session{Rig: r, progress: io.Discard}}
	reviews, args, err := r.AnswersReviews(t.Context())
	require.NoError(t, err)
	holds, err := freeport.Address()
	require.NoError(t, err)
	// This process has served the webhooks of job-extensions so far, and keeps their certificate.
	f.start(args, "--webhook-bind-address="+holds, "--webhook-manage-certificate=false")
	require.NoError(t, r.Cluster.Route(t.Context(), clustertest.WebhookPort, holds))
	require.NoError(t, rig.Until(t.Context(), time.Second, patience, fmt.Errorf("no review is answered"), func(ctx context.Context) (bool, error) { return f.review(ctx) == nil, nil }))
	f.ask(t.Context(), func() bool { return len(f.reviews) >= 20 }) // one-time allocations do not count
	idle, err := r.Use()
	require.NoError(t, err)
	f.reviews, f.holds = nil, nil
	most := rig.Use{}
	decided := 0
	err = rig.Beside(t.Context(), func(ctx context.Context) error {
		ctx, stop := context.WithTimeout(ctx, floodTime)
		defer stop()
		var group sync.WaitGroup
		defer group.Wait()
		for _, address := range []string{reviews, holds} {
			for i := range slowClients {
				group.Go(func() { slowly(ctx, address, i) })
			}
		}
		f.ask(t.Context(), func() bool {
			now, err := r.Use()
			if err != nil {
				t.Error(err)
			}
			for name, usage := range now {
				if usage.Resident > most[name].Resident {
					most[name] = usage
				}
			}
			return ctx.Err() != nil
		})
		return nil
	}, func(window context.Context) error {
		for ; window.Err() == nil; decided++ {
			if err := f.decide(t.Context(), decided); err != nil { // the last one ends after the window
				t.Error(err)
				return err
			}
		}
		return nil
	})
	if err != nil || decided == 0 {
		t.Errorf("%d other units were decided: %v", decided, err)
	}
	for _, name := range []string{rig.Controller, rig.Extensions} {
		more := most[name].Resident - idle[name].Resident
		t.Logf("%s: %.0f MiB, and %.0f MiB more in the flood", name, rig.MiB(idle[name].Resident), rig.MiB(more))
		if more > mostMore {
			t.Errorf("%s uses %.0f MiB more", name, rig.MiB(more))
		}
	}
	for name, took := range map[string]rig.Durations{"review": f.reviews, "hold": f.holds} {
		t.Logf("%d answers to a %s: p50 %v, p99 %v", len(took), name, took.Percentile(0.5), took.Percentile(0.99))
		if len(took) == 0 || took.Percentile(1) > longest {
			t.Errorf("the longest of %d answers to a %s took %v", len(took), name, took.Percentile(1))
		}
	}
}

type flood struct {
	*session
	t              *testing.T
	reviews, holds rig.Durations
}

// start applies a tree and starts the programs with additional arguments.
func (f *flood) start(controllerArgs []string, extensionsArgs ...string) {
	f.t.Helper()
	ctx := f.t.Context()
	require.NoError(f.t, f.MakeNamespaces(ctx, floodNamespace))
	require.NoError(f.t, f.ApplyTree(ctx, quotav1beta1.ElasticQuotaNode{Name: "root", Namespaces: []string{floodNamespace},
		Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000000")}}))
	_, err := f.Run(ctx, rig.Controller, nil, controllerArgs...)
	require.NoError(f.t, err)
	_, err = f.Run(ctx, rig.Extensions, nil, append(extensionsArgs, "--enabled-extensions=job")...)
	require.NoError(f.t, err)
}

// decide creates and deletes a unit, and waits until the tree has shown both.
func (f *flood) decide(ctx context.Context, i int) error {
	shown := func(units int32) error {
		return f.WaitForNode(ctx, patience, "root", func(node quotav1beta1.ElasticQuotaNodeStatus) bool { return node.Jobs == units })
	}
	of := v1alpha1.ConsumerReference{APIVersion: "example.com/v1", Kind: "Thing", Name: fmt.Sprint("other-", i), Namespace: floodNamespace}
	if _, err := f.createUnit(ctx, of, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")}); err != nil {
		return err
	}
	if err := shown(1); err != nil {
		return err
	}
	if err := f.Queue.SchedulingV1alpha1().QueueUnits(floodNamespace).Delete(ctx, of.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return shown(0)
}

// ask sends genuine requests through the API server until done: a review, a small job, and now and then a large job,
// which takes longer anyway.
func (f *flood) ask(ctx context.Context, done func() bool) {
	timed := func(what string, all *rig.Durations, request func() error) {
		began := time.Now()
		if err := request(); err != nil {
			f.t.Errorf("%s: %v", what, err)
		}
		*all = append(*all, time.Since(began))
	}
	var large rig.Durations
	for i := 0; !done(); i++ {
		timed("a review", &f.reviews, func() error { return f.review(ctx) })
		timed("a job", &f.holds, func() error { return f.hold(ctx, 0) })
		if i%20 == 0 {
			timed("a large job", &large, func() error { return f.hold(ctx, largeJob) })
		}
	}
}

func (f *flood) review(ctx context.Context) error {
	_, err := f.Queue.VisibilityV1alpha1().QueueReviews(floodNamespace).Create(ctx, &visibilityv1alpha1.QueueReview{ObjectMeta: metav1.ObjectMeta{Name: "flood"}},
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

func (f *flood) hold(ctx context.Context, size int) error {
	var env []corev1.EnvVar
	for i := range size / 1000 {
		env = append(env, corev1.EnvVar{Name: fmt.Sprint("V", i), Value: strings.Repeat("x", 950)})
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "flood", Annotations: map[string]string{wellknown.SuspendAnnotation: "true"}},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "main", Image: "busybox", Env: env}}}}}}
	held, err := f.Kube.BatchV1().Jobs(floodNamespace).Create(ctx, job, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil && !ptr.Deref(held.Spec.Suspend, false) {
		return fmt.Errorf("it is not held")
	}
	return err
}

// slowly is a slow client. Out of four, one sends nothing, one sends a header byte by byte, and two send an endless
// body. When the server closes the connection, the client opens another one.
func slowly(ctx context.Context, address string, i int) {
	ticker := time.NewTicker(time.Duration(1+i%3) * 50 * time.Millisecond)
	defer ticker.Stop()
	for ctx.Err() == nil {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			continue
		}
		context.AfterFunc(ctx, func() { _ = conn.Close() })
		slow, part := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}), []byte("A")
		switch {
		case i%4 == 0:
			_, err = io.ReadFull(conn, part) // waits until the server closes it
		case i%4 > 1:
			_, err = io.WriteString(slow, "POST /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 500000\r\n\r\n")
			part = bytes.Repeat(part, 16<<10)
		}
		for sent := 0; err == nil; sent++ {
			<-ticker.C
			if sent == 20 { // 320 KiB of a body
				part = part[:1]
			}
			_, err = slow.Write(part)
		}
		_ = conn.Close()
	}
}
