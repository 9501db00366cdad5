package main

import (
	"os"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/pkg/plugin/command"
	"kube-queue.dev/kube-queue/test/require"
)

func TestThePageDescribesEachCommandWithItsFlags(t *testing.T) {
	text, err := page(command.New(command.Environment{}))
	require.NoError(t, err)
	require.Says(t, "the page", text, "### list\n", "### why\n", "### simulate\n", "### version\n", "and [simulate](#simulate) |", "kubectl kube-queue stop QUEUE [flags]", "--drain", "--queue-namespace")
	for _, once := range []string{"--dry-run WHAT", "JOB is the name"} {
		if n := strings.Count(text, once); n != 1 {
			t.Errorf("the page has %q %d times", once, n)
		}
	}
	for _, no := range []string{"### help", "### completion", "--help", "--certificate-authority", os.TempDir()} {
		if strings.Contains(text, no) {
			t.Errorf("the page has %q", no)
		}
	}
}
