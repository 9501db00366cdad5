package ack

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/test/require"
)

// The user page has a row for everything that the converter knows.
func TestThePageHasEverySettingAndKey(t *testing.T) {
	text, err := os.ReadFile("../../../docs/migration/from-ack-kube-queue.md")
	require.NoError(t, err)
	page := string(text)
	var names []string
	for _, s := range settings() {
		names = append(names, s.name)
	}
	names = slices.Concat(names, slices.Collect(maps.Keys(tree.FormerAttributes)), slices.Collect(maps.Keys(keysOfJobs)), quotaLabels, preemptibleKeys, bookkeeping,
		slices.Collect(maps.Keys(annotationsOfQueues)), ofTheProgram)
	for _, name := range names {
		switch {
		case slices.Contains([]string{"v", "logtostderr", "zap-log-level", "block-for-test"}, name): // for logs and tests
		case strings.HasPrefix(name, "available-"), strings.HasPrefix(name, "related-"), strings.HasPrefix(name, "koord-queue/"): // the page names the prefix
		case !strings.Contains(strings.ToLower(page), strings.ToLower(name)):
			t.Errorf("the page does not name %s", name)
		}
	}
}
