package main

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestOnlyARunningEndlessJobIsDeletedAndOnce(t *testing.T) {
	cluster, pi := job{named(t, "RayCluster"), "notebook"}, job{named(t, "Job"), "pi"}
	var given []string
	c := newCloser(0, func(_ context.Context, args ...string) (string, error) {
		given = append(given, strings.Join(args, " "))
		return "gone\n", nil
	})
	c.see(t.Context(), []row{{job: cluster, phase: "Dequeued"}, {job: pi, phase: "Running"}})
	for range 3 {
		c.see(t.Context(), []row{{job: cluster, phase: "Running"}, {job: pi, phase: "Running"}})
	}
	if command, answer := <-c.steps, <-c.steps; command.text != "kubectl delete raycluster/notebook\n" || answer.text != "  gone\n" || answer.err != nil {
		t.Errorf("reported %q, then %q, %v", command.text, answer.text, answer.err)
	}
	c.running.Wait()
	if len(given) != 1 || given[0] != "delete raycluster/notebook" {
		t.Errorf("given %q", given)
	}
}

func TestAJobThatCannotBeDeletedIsReported(t *testing.T) {
	refused := errors.New("refused")
	c := newCloser(0, func(context.Context, ...string) (string, error) { return "", refused })
	c.see(t.Context(), []row{{job: job{named(t, "RayCluster"), "notebook"}, phase: "Running"}})
	<-c.steps
	if answer := <-c.steps; !errors.Is(answer.err, refused) || !strings.Contains(answer.err.Error(), "RayCluster notebook") {
		t.Errorf("reported %v", answer.err)
	}
	c.running.Wait()
}

func TestNothingIsDeletedAfterTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := newCloser(deadline, func(context.Context, ...string) (string, error) {
		t.Error("kubectl is called")
		return "", nil
	})
	c.see(ctx, []row{{job: job{named(t, "RayCluster"), "notebook"}, phase: "Running"}})
	cancel()
	c.running.Wait()
}
