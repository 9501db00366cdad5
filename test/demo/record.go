package main

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// test/alerts draws the dashboard from a recording of this many scrapes.
const (
	recordingFile = "test/alerts/testdata/recording.txt"
	scrapes       = 61
	every         = 5 * time.Second
)

// recording has the values of each metric series, one per scrape. If a scrape lacks the series, the value is "stale",
// which is how Prometheus marks its end.
type recording map[string][]string

// add adds a line of the scrape with this number.
func (r recording) add(scrape int, instance, text string) {
	end := strings.LastIndexByte(text, ' ')
	name, labels, _ := strings.Cut(text[:max(end, 0)], "{")
	// The dashboard shows no sums or counts of histograms.
	if !strings.HasPrefix(name, "kube_queue_") || strings.HasSuffix(name, "_sum") || strings.HasSuffix(name, "_count") {
		return
	}
	series := fmt.Sprintf("%s{%sinstance=%q}", name, strings.Replace(labels, "}", ",", 1), instance)
	if r[series] == nil {
		r[series] = slices.Repeat([]string{"stale"}, scrapes)
	}
	r[series][scrape] = text[end+1:]
}

// String returns a line for each series in the notation of Prometheus's tests.
func (r recording) String() string {
	var b strings.Builder
	for _, series := range slices.Sorted(maps.Keys(r)) {
		fmt.Fprintf(&b, "%s %s\n", series, strings.Join(r[series], " "))
	}
	return b.String()
}

// story maps seconds to what happens then to the three teams of the tour. Team vision borrows until team language
// takes back what it has lent. The interns submit a job that can never run, and their queue is stopped for a while.
func (e *environment) story(kube kubernetes.Interface) map[int][]func(context.Context) error {
	steps := map[int][]func(context.Context) error{}
	kubectl := func(at int, args ...string) {
		steps[at] = append(steps[at], func(ctx context.Context) error { return e.show(ctx, args...) })
	}
	jobs := func(team string, from, until, every int, pods int32, seconds int) {
		for at := from; at <= until; at += every {
			job := training(team, fmt.Sprintf("train-%d", at), pods, seconds)
			steps[at] = append(steps[at], func(ctx context.Context) error {
				_, err := kube.BatchV1().Jobs(team).Create(ctx, job, metav1.CreateOptions{})
				return err
			})
		}
	}
	jobs("vision", 5, 200, 15, 2, 50)
	jobs("language", 80, 170, 10, 1, 35)
	jobs("interns", 20, 220, 10, 1, 15)
	kubectl(60, applied("interns.yaml")...)
	kubectl(150, "delete", "job", "huge", "-n", "interns")
	for at, stop := range map[int]string{150: "Hold", 190: "None"} {
		kubectl(at, "patch", "queue", "company-interns", "-n", "kube-queue", "--type=merge", "-p", `{"spec":{"stop":"`+stop+`"}}`)
	}
	for at := 90; at <= 240; at += 30 { // people ask when their jobs start
		steps[at] = append(steps[at], func(ctx context.Context) error {
			return exec.CommandContext(ctx, e.plugin(), "queue", "company-vision", "--kubeconfig", e.cluster.Kubeconfig).Run()
		})
	}
	return steps
}

// training returns a job with pods of 2 GPUs, which run for this many seconds, as declared.
func training(team, name string, pods int32, seconds int) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
		wellknown.SuspendAnnotation: "true", wellknown.ExpectedRunTimeAnnotation: strconv.Itoa(seconds)}}}
	job.Spec.Parallelism, job.Spec.Completions = &pods, &pods
	job.Spec.Template.Annotations = map[string]string{"localcluster.kube-queue.dev/run-time": fmt.Sprintf("%ds", seconds)}
	gpus := corev1.ResourceList{gpu: resource.MustParse("2")}
	job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
		Name: "train", Image: "trainer", Resources: corev1.ResourceRequirements{Requests: gpus, Limits: gpus}}}}
	return job
}

// record tells the story in a new cluster, and records the metrics of the programs.
func record(ctx context.Context, e *environment) error {
	say("Recording the metrics of three teams that share 16 GPUs")
	if err := e.up(ctx); err != nil {
		return err
	}
	for _, args := range chapters()[0].kubectl { // creates the quotas
		if err := e.show(ctx, args...); err != nil {
			return err
		}
	}
	kube, err := kubernetes.NewForConfig(e.cluster.Config())
	if err != nil {
		return err
	}
	r, story, from := recording{}, e.story(kube), time.Now().Truncate(time.Second).Add(time.Second)
	for scrape := range scrapes {
		at := from.Add(time.Duration(scrape) * every)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(at)):
		}
		if late := time.Since(at); late > every/2 {
			return fmt.Errorf("scrape %d is %v late; record again when the machine has less to do", scrape, late)
		}
		for instance, address := range e.metrics {
			if err := r.scrape(ctx, scrape, instance, address); err != nil {
				return err
			}
		}
		for _, step := range story[scrape*int(every/time.Second)] {
			if err := step(ctx); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(filepath.Join(e.root, recordingFile), []byte(from.UTC().Format("# "+time.RFC3339+"\n")+r.String()), 0o644)
}

// scrape adds the metrics that the instance serves at the address.
func (r recording) scrape(ctx context.Context, scrape int, instance, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer := bufio.NewScanner(resp.Body)
	for answer.Scan() {
		r.add(scrape, instance, answer.Text())
	}
	return answer.Err()
}
