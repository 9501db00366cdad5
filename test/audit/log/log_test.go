package log

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/require"
)

// read is all lines of a log, each with its number.
func read(t *testing.T, raw string) (lines []string, unfinished bool) {
	t.Helper()
	unfinished, err := Lines(strings.NewReader(raw), func(number int, line []byte) error {
		lines = append(lines, fmt.Sprintf("%d %s", number, line))
		return nil
	})
	require.NoError(t, err)
	return lines, unfinished
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	_, err := zip.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, zip.Close())
	return out.String()
}

func TestLinesAreNumbered(t *testing.T) {
	for name, raw := range map[string]string{"plain": "a\n\nb \n", "gzip": zipped(t, "a\n\nb \n")} {
		if got, unfinished := read(t, raw); !slices.Equal(got, []string{"1 a", "2 ", "3 b"}) || unfinished {
			t.Errorf("%s: got %q, unfinished %t", name, got, unfinished)
		}
	}
}

func TestALastLineWithoutAnEndIsLeftOut(t *testing.T) {
	for name, raw := range map[string]string{"plain": "a\nhalf", "gzip": zipped(t, "a\nhalf")} {
		if got, unfinished := read(t, raw); len(got) != 1 || !unfinished {
			t.Errorf("%s: %d lines, unfinished %t; want 1, true", name, len(got), unfinished)
		}
	}
	raw := zipped(t, "a\n")
	if got, unfinished := read(t, raw[:len(raw)-1]); len(got) != 1 || unfinished {
		t.Errorf("of gzip that is cut off after a line: %q, unfinished %t", got, unfinished)
	}
}

func TestAVisitorEndsTheReading(t *testing.T) {
	enough := errors.New("enough")
	n := 0
	_, err := Lines(strings.NewReader("a\nb\n"), func(int, []byte) error { n++; return enough })
	if !errors.Is(err, enough) || n != 1 {
		t.Errorf("%d lines and %v, want 1 and %v", n, err, enough)
	}
}

func TestAFileThatGrowsIsReadInParts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	file := Open(path)
	var got []string
	visit := func(number int, line []byte) error {
		got = append(got, fmt.Sprintf("%d %s", number, line))
		return nil
	}
	if err := file.Read(visit); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a log that is not there: %v", err)
	}
	for _, part := range []struct{ text, want string }{{"a\nb\nhal", "[1 a 2 b]"}, {"f\n", "[3 half]"}, {"", "[]"}} {
		appendTo(t, path, part.text)
		got = nil
		if err := file.Read(visit); err != nil || fmt.Sprint(got) != part.want {
			t.Errorf("after %q: %q, %v; want %s", part.text, got, err, part.want)
		}
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer file.Close()
	_, err = file.WriteString(text)
	require.NoError(t, err)
}

// marked is an audit entry for the creation of a ConfigMap.
func marked(name string, code int) string {
	return fmt.Sprintf(`{"stage":"ResponseComplete","verb":"create","objectRef":{"resource":"configmaps","namespace":"default","name":%q},`+
		`"responseStatus":{"code":%d}}`, name, code) + "\n"
}

func TestWaitForFindsTheMarker(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- WaitFor(ctx, path, Marker{"default", "marker"}) }()
	raw := marked("other", 409) + marked("marker", 201)
	for _, part := range []string{raw[:100], raw[100 : len(raw)-5], raw[len(raw)-5:]} {
		appendTo(t, path, part)
	}
	require.NoError(t, <-done)
}

func TestWaitForGivesUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	appendTo(t, path, marked("marker", 409)+"no JSON\n"+strings.Replace(marked("marker", 201), "ResponseComplete", "RequestReceived", 1))
	for _, path := range []string{path, path + ".none"} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := WaitFor(ctx, path, Marker{"default", "marker"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want that its time is over", err)
		}
	}
}

func TestAnEntryReportsWhoRequestedWhat(t *testing.T) {
	for _, test := range []struct {
		line, by, agent string
		write, dryRun   bool
	}{
		{`{"stage":"ResponseComplete","verb":"patch","objectRef":{},"user":{"username":"a"},"userAgent":"p/v1 (x)"}`, "a", "p", true, false},
		{`{"stage":"ResponseComplete","verb":"patch","objectRef":{},"user":{"username":"a"},"impersonatedUser":{"username":"b"}}`, "b", "", true, false},
		{`{"stage":"ResponseComplete","verb":"create","objectRef":{},"requestURI":"/x?fieldManager=a&dryRun=All","userAgent":"p q"}`, "", "p", true, true},
		{`{"stage":"ResponseComplete","verb":"delete","objectRef":{},"requestObject":{"dryRun":["All"]}}`, "", "", true, true},
		{`{"stage":"ResponseComplete","verb":"get","objectRef":{}}`, "", "", false, false},
		{`{"stage":"ResponseStarted","verb":"create","objectRef":{}}`, "", "", false, false},
		{`{"stage":"ResponseComplete","verb":"create"}`, "", "", false, false},
	} {
		e, err := Parse([]byte(test.line))
		require.NoError(t, err)
		if e.By() != test.by || e.Agent() != test.agent || e.Write() != test.write || e.DryRun() != test.dryRun {
			t.Errorf("%s: by %q with %q, write %t, dry run %t", test.line, e.By(), e.Agent(), e.Write(), e.DryRun())
		}
	}
}
