package migration_test

import (
	"bytes"
	"os"
	"testing"

	"kube-queue.dev/kube-queue/pkg/migration"
	"kube-queue.dev/kube-queue/pkg/migration/kueue"
	"kube-queue.dev/kube-queue/pkg/migration/migrationtest"
	"kube-queue.dev/kube-queue/test/docs"
	"kube-queue.dev/kube-queue/test/require"
)

func TestTheExampleOfThePageIsConvertedAsItShows(t *testing.T) {
	page, err := docs.ReadPage(os.DirFS("../.."), "docs/migration/from-kueue.md")
	require.NoError(t, err)
	result, err := kueue.Convert(migrationtest.Read(t, page.Manifests[0]))
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, migration.WriteYAML(&text, result.Objects))
	if len(result.Findings) > 0 || text.String() != page.Manifests[1] {
		t.Errorf("findings %v, and the objects\n%s", result.Findings, text.String())
	}
}
