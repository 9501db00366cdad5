package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
)

// tour is the demo of three teams that share GPUs: chapters that run kubectl, wait for the states
// that follow, and say why. Its jobs stay, so that the reader can go on.

// chapter is a part of the tour.
type chapter struct {
	title string
	// why is printed before the commands, seen after the table.
	why, seen string
	// kubectl are the arguments of the commands.
	kubectl [][]string
	// states are the states to wait for.
	states []state
	// events is a job whose events are shown.
	events jobName
}

const teamFolder = "test/demo/manifests/teams/"

func applied(file string) []string { return []string{"apply", "-f", teamFolder + file} }

func chapters() []chapter {
	vision := func(name string) jobName { return jobName{"vision", name} }
	language := func(name string) jobName { return jobName{"language", name} }
	huge := jobName{"interns", "huge"}
	running := v1alpha1.PhaseRunning
	waiting := v1alpha1.PhaseEnqueued
	return []chapter{
		{
			title: "An administrator gives out quota",
			why: "Three teams share 16 GPUs. Each has a guarantee (min) and a limit (max). Each namespace\n" +
				"has a queue. By default, a job can be evicted 30 seconds after its\n" +
				"start; here after 1 second, so you do not have to wait.",
			kubectl: [][]string{
				applied("quota.yaml"),
				{"wait", "queue/company-vision", "-n", "kube-queue", "--for=create", "--timeout=30s"},
				{"patch", "queue", "company-vision", "-n", "kube-queue", "--type=merge", "-p", `{"spec":{"preemption":{"minRunTime":"1s"}}}`},
			},
		},
		{
			title:   "Team vision borrows",
			why:     "Three jobs request 4 GPUs each. Team vision is guaranteed 8, and the other 8 are idle.",
			kubectl: [][]string{applied("vision.yaml")},
			states:  []state{{vision("train-1"), running, ""}, {vision("train-2"), running, ""}, {vision("train-3"), running, ""}},
			seen:    "The jobs use 12 GPUs: the guaranteed 8, and 4 borrowed ones.",
		},
		{
			title:   "Its next job waits",
			why:     "Another job of 4 GPUs would use more than the max of team vision.",
			kubectl: [][]string{applied("more-vision.yaml")},
			states:  []state{{vision("train-4"), waiting, "QuotaExceeded"}},
			seen:    "It starts when another job of the team ends. 4 GPUs stay free for the other teams.",
		},
		{
			title:   "A job can never run",
			why:     "The interns can use 4 GPUs, and this job requests 8.",
			kubectl: [][]string{applied("interns.yaml")},
			states:  []state{{huge, waiting, "ExceedsMaxQuota"}},
			events:  huge,
			seen:    "The job says so immediately, and other jobs of the team can pass it.",
		},
		{
			title: "Team language takes back what it has lent",
			why: "Its two jobs request 4 and 2 GPUs, and it is guaranteed 6. Only 4 are free, so a job that\n" +
				"has borrowed must go.",
			kubectl: [][]string{applied("language.yaml")},
			states: []state{
				{language("bert-1"), running, ""}, {language("bert-2"), running, ""},
				{vision("train-1"), running, ""}, {vision("train-2"), running, ""},
				{vision("train-3"), waiting, ""},
			},
			events: vision("train-3"),
			seen: "train-3 was evicted: it was suspended, its pods ended, and it is queued again. Team vision\n" +
				"keeps its guarantee of 8 GPUs.",
		},
	}
}

// nextCommand is a command for the reader, with what it shows.
type nextCommand struct{ shows, command string }

func nextCommands(kubeconfig, kubectl string) []nextCommand {
	return []nextCommand{
		{"the cluster of this demo", "export KUBECONFIG=" + kubeconfig},
		{"each job: whether it runs, or why it waits", kubectl + " get queueunits -A -o wide"},
		{"the same on the job itself, as its owner sees it", kubectl + " describe job huge -n interns"},
		{"end a job: train-3, which was evicted, runs again", kubectl + " delete job train-2 -n vision"},
		{"", kubectl + " wait job train-3 -n vision --for=jsonpath='{.spec.suspend}'=false --timeout=30s"},
		{"", kubectl + " get queueunits -n vision"},
		{"give the interns 8 GPUs: job huge now waits only for room",
			kubectl + ` patch elasticquotatree elasticquotatree -n kube-system --type=json \` + "\n" +
				`    -p '[{"op":"replace","path":"/spec/root/children/2/max","value":{"nvidia.com/gpu":"8"}}]'`},
		{"its unit shows the new reason within 2 seconds", kubectl + " wait queueunits --all -n interns \\\n" +
			"    --for=jsonpath='{.status.reason}'=QuotaExceeded --timeout=60s"},
		{"", kubectl + " get queueunits -n interns -o wide"},
		{"stop a queue: it admits no more jobs", kubectl + ` patch queue company-language -n kube-queue --type=merge -p '{"spec":{"stop":"Hold"}}'`},
		{"", kubectl + " get queues -A -o wide"},
	}
}

// deadlineOfChapter is far more than a chapter takes.
const deadlineOfChapter = 90 * time.Second

// takeTour shows all chapters, and then checks the audit log.
func takeTour(ctx context.Context, e *environment) error {
	say("Starting a control plane with two simulated nodes of 8 GPUs each")
	if err := e.up(ctx); err != nil {
		return err
	}
	w, err := newWatch(ctx, e.cluster)
	if err != nil {
		return err
	}
	all := chapters()
	for i, c := range all {
		say(fmt.Sprintf("%d of %d: %s", i+1, len(all), c.title))
		if err := e.showChapter(ctx, w, c); err != nil {
			return err
		}
	}
	say("Checking the audit log of the API server")
	if err := e.audit(ctx); err != nil {
		return err
	}
	fmt.Println("A program that knows only the writes to the API server finds no violation: no job had a pod\n" +
		"before its release, and no quota was above its max.")
	return nil
}

func (e *environment) showChapter(ctx context.Context, w *watch, c chapter) error {
	ctx, cancel := context.WithTimeoutCause(ctx, deadlineOfChapter, errors.New("the states were not reached in "+deadlineOfChapter.String()))
	defer cancel()
	fmt.Printf("%s\n\n", c.why)
	for _, args := range c.kubectl {
		if err := e.show(ctx, args...); err != nil {
			return err
		}
	}
	if len(c.states) == 0 {
		return nil
	}
	if err := w.waitFor(ctx, c.states); err != nil {
		return err
	}
	fmt.Println()
	if err := w.print(ctx, os.Stdout); err != nil {
		return err
	}
	if c.events != (jobName{}) {
		if err := w.printEvents(ctx, os.Stdout, c.events); err != nil {
			return err
		}
	}
	fmt.Printf("\n%s\n", c.seen)
	return nil
}

// shellWords quotes arguments as a shell needs them.
func shellWords(args []string) string {
	var words []string
	for _, arg := range args {
		if strings.ContainsAny(arg, `{}" $`) {
			arg = "'" + arg + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}

// sayNext prints the next steps.
func (e *environment) sayNext() {
	fmt.Print("\n== To try next: the cluster is still running, with these jobs in it\n\n")
	for _, next := range nextCommands(e.shown(e.cluster.Kubeconfig), e.shown(e.kubectl())) {
		if next.shows != "" {
			fmt.Printf("  # %s\n", next.shows)
		}
		fmt.Printf("  %s\n", next.command)
	}
	fmt.Print("\nTo stop the cluster: make demo-down\n")
	fmt.Printf("In a browser:        KUBECONFIG=%s %s web '/?all=1'\n", e.shown(e.cluster.Kubeconfig), e.shown(e.plugin()))
	fmt.Print("\nPods are simulated: those of your own jobs end after 10 seconds, unless their annotation\n" +
		"localcluster.kube-queue.dev/run-time is another time, such as 60s, or never.\n")
}
