package audit

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/audit/model"
)

func unzip(t testing.TB, path string) []byte {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(unzipped)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

var rulePattern = regexp.MustCompile(`\.fail\("([a-z-]+)"`)

// rulesInSource returns the rules of all checks.
func rulesInSource(t *testing.T) map[string]bool {
	sources, err := filepath.Glob("checks/*.go")
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]bool{}
	for _, path := range sources {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range rulePattern.FindAllSubmatch(text, -1) {
			rules[string(match[1])] = true
		}
	}
	if len(rules) < 10 {
		t.Fatalf("only %d rules found", len(rules))
	}
	return rules
}

func TestReadIgnoresAnIncompleteLastLine(t *testing.T) {
	s := newScript(t)
	goodStory(s)
	raw := s.bytes()
	log, err := Read(bytes.NewReader(raw[:len(raw)-10]))
	if err != nil {
		t.Fatal(err)
	}
	if !log.Unfinished || log.Lines != len(s.entries)-1 {
		t.Errorf("unfinished %t with %d lines, want true with %d", log.Unfinished, log.Lines, len(s.entries)-1)
	}
}

func TestReadAcceptsLongLinesAndGzip(t *testing.T) {
	s := newScript(t)
	p := s.tfjob("a", 1)
	p.job.set("metadata.annotations", map[string]any{suspendKey: "true", "note": strings.Repeat("x", 3<<20)})
	p.job.write(admin, "update", "", 200)
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	if _, err := zip.Write(s.bytes()); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	log, err := Read(&zipped)
	if err != nil {
		t.Fatal(err)
	}
	if log.Entries != 2 {
		t.Errorf("%d writes, want 2", log.Entries)
	}
}

func TestReadRefusesInvalidLogs(t *testing.T) {
	s := newScript(t)
	s.tfjob("a", 1)
	if _, err := Read(strings.NewReader("nonsense\n" + string(s.bytes()))); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("got %v, want an error about line 1", err)
	}
	for _, e := range s.entries {
		delete(e, "responseObject")
	}
	if _, err := Read(bytes.NewReader(s.bytes())); !errors.Is(err, model.ErrNoObjects) {
		t.Errorf("got %v, want %v", err, model.ErrNoObjects)
	}
	log, err := Read(strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Check(Options{}); !errors.Is(err, ErrNothing) {
		t.Errorf("got %v, want %v", err, ErrNothing)
	}
}

func TestUnknownKindsAndInvalidObjectsAreIgnored(t *testing.T) {
	s := newScript(t)
	s.create(admin, "example.com/v1/things", `{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}, spec: [1, 2]}`)
	s.create(admin, tfjobs, `{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: a}, spec: nonsense, status: {conditions: 3}}`)
	s.create(admin, batchJobs, `{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: a}}`)
	s.create(admin, trees, `{apiVersion: x, kind: ElasticQuotaTree, metadata: {name: t, namespace: kube-system}, spec: {root: {name: r, max: {cpu: nonsense}}}}`)
	if got := rulesOf(t, s.log(), Options{}); len(got) > 0 {
		t.Errorf("got %q, want nothing", got)
	}
}

func TestADeletedCollectionIsSeen(t *testing.T) {
	s := newScript(t)
	s.create(admin, trees, fourCPU)
	p := s.tfjob("a", 3).admit()
	s.entry(admin, "deletecollection", tfjobs, "", "default", "", 200, map[string]any{"kind": "TFJobList", "items": []any{p.job.obj}})
	s.tfjob("b", 3).admit()
	p.unit.remove(collector)
	if got := rulesOf(t, s.log(), Options{}); len(got) > 0 {
		t.Errorf("got %q, want nothing", got)
	}
}

func TestAJobWithAFinalizerIsBeingDeletedWithItsCollection(t *testing.T) {
	for _, deleted := range []bool{true, false} {
		s := newScript(t)
		s.create(admin, trees, fourCPU)
		p := s.tfjob("a", 3)
		p.enqueue()
		p.job.patch(operator, "metadata.finalizers", []any{"example.com/finalizer"})
		if deleted { // the response comes after the last object of the collection
			collection := s.entry(admin, "deletecollection", tfjobs, "", "default", "", 200, map[string]any{"kind": "TFJobList", "items": []any{p.job.obj}})
			collection["stageTimestamp"] = "2026-03-01T12:10:00.000000Z"
		}
		p.unit.remove(extensions)
		if got := rulesOf(t, s.log(), Options{}); slices.Contains(got, "unit-deleted") == deleted {
			t.Errorf("deleted with its collection: %t: got %q", deleted, got)
		}
	}
}

func TestAnObjectEndsWithItsLastFinalizer(t *testing.T) {
	for _, returns := range []string{"the object", "its metadata alone, as to the garbage collector"} {
		t.Run("the server returns "+returns, func(t *testing.T) { lastFinalizer(t, returns != "the object") })
	}
}

func lastFinalizer(t *testing.T, metadataAlone bool) {
	s := newScript(t)
	s.create(admin, trees, fourCPU)
	p := s.tfjob("a", 3).admit()
	p.job.patch(admin, "metadata.finalizers", []any{"foregroundDeletion"}, "metadata.deletionTimestamp", "2026-03-01T12:00:05Z", "metadata.deletionGracePeriodSeconds", 0)
	s.entries[len(s.entries)-1]["verb"] = "delete"
	version := p.job.text("metadata.resourceVersion")
	last := p.job.patch(collector, "metadata.finalizers", nil)
	if err := setVersion(last, version); err != nil {
		t.Fatal(err)
	}
	if metadataAlone {
		object := last["responseObject"].(map[string]any)
		last["responseObject"] = map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]}
	}
	s.tfjob("b", 3).admit()
	p.unit.remove(collector)
	if got := rulesOf(t, s.log(), Options{}); len(got) > 0 {
		t.Errorf("got %q, want nothing", got)
	}
}

func setVersion(e map[string]any, version string) error {
	meta, ok := e["responseObject"].(map[string]any)["metadata"].(map[string]any)
	if !ok {
		return errors.New("no metadata")
	}
	meta["resourceVersion"] = version
	return nil
}
