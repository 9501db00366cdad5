package migration

import (
	"os"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/docs"
	"kube-queue.dev/kube-queue/test/harness"
)

// commandsOf returns the commands of the blocks of a page that begin with one of the words, in order.
func commandsOf(t *testing.T, page string, beginnings ...string) []string {
	t.Helper()
	read, err := docs.ReadPage(os.DirFS(suite.Repository), page)
	harness.Must(t, err)
	var commands []string
	for _, command := range read.Commands {
		for _, beginning := range beginnings {
			if !command.Inline && strings.HasPrefix(command.Text, beginning) {
				commands = append(commands, command.Text)
			}
		}
	}
	if len(commands) == 0 {
		t.Fatalf("%s has no such commands", page)
	}
	return commands
}
