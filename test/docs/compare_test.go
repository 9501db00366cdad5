package docs

import (
	"os"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/require"
)

const shownUnits = `NAME                         PHASE      AGE   MESSAGE
train-rsswq-job-9af2526ff2   Enqueued   4s    used 1500m of max 2
train-s2vjb-job-c9e0f8fe3a   Running    4s
`

func TestAnOutputDiffersInNamesAndTimesOnly(t *testing.T) {
	for name, test := range map[string]struct{ shown, actual, problem string }{
		"the same": {shownUnits, shownUnits, ""},
		"other names, times and widths": {shownUnits, `NAME                         PHASE      AGE     MESSAGE
train-bbbbb-job-9af2526000   Enqueued   1m14s   used 1500m of max 2
train-ccccc-job-c9e0f8f000   Running    4s
`, ""},
		"rows in another order": {shownUnits, `NAME                         PHASE      AGE   MESSAGE
train-bbbbb-job-c9e0f8f000   Running    4s
train-ccccc-job-9af2526000   Enqueued   4s    used 1500m of max 2
`, ""},
		"another column":     {shownUnits, strings.Replace(shownUnits, "PHASE", "STATE", 1), "STATE"},
		"another cell":       {shownUnits, strings.Replace(shownUnits, "Running", "Waiting", 1), "Waiting"},
		"another figure":     {shownUnits, strings.Replace(shownUnits, "max 2", "max 3", 1), "max 3"},
		"a missing row":      {shownUnits, strings.Join(strings.SplitAfter(shownUnits, "\n")[:2], ""), "2 lines instead of 3"},
		"a missing duration": {"NAME   AGE   END\na      4s    x\n", "NAME   AGE   END\na            x\n", "instead of"},
		"one name for two":   {"NAME\na-bbbbb\na-ccccc\n", "NAME\na-ddddd\na-ddddd\n", "instead of"},
		"left out at the start": {"[...]\nEvents:\n  Type    Reason  Age  From  Message\n  ----    ------  ---  ----  -------\n  Normal  Queued  3s   a     b\n",
			"Name: c\nEvents:\n  Type    Reason  Age               From  Message\n  ----    ------  ---               ----  -------\n  Normal  Queued  12s               a     b\n", ""},
		"events that are repeated": {"Events:\n  Type    Reason  Age               From  Message\n  Normal  Queued  8s (x2 over 57s)  a     b\n",
			"Events:\n  Type    Reason  Age                From  Message\n  Normal  Queued  1m (x2 over 3m5s)  a     b\n", ""},
		"events that are repeated more often": {"Events:\n  Type    Reason  Age               From  Message\n  Normal  Queued  8s (x2 over 57s)  a     b\n",
			"Events:\n  Type    Reason  Age               From  Message\n  Normal  Queued  8s (x3 over 57s)  a     b\n", "x3"},
		"an event more": {"[...]\nEvents:\n  Type    Reason  Age  From  Message\n  Normal  Queued  3s   a     b\n",
			"Events:\n  Type    Reason  Age  From  Message\n  Normal  Queued  3s   a     b\n  Normal  Queued  3s   a     c\n", "4 lines instead of 3"},
		"left out at both ends":                     {"[...]\nb: 2\n[...]\n", "a: 1\nb: 2\nc: 3\n", ""},
		"another line where both ends are left out": {"[...]\nb: 2\nc: 3\n[...]\n", "a: 1\nb: 2\nc: 4\nd: 5\n", "c: 4"},
		"a table of the plugin": {"Ahead of it:\n  NAMESPACE   NAME    PHASE     AGE   ENDS-BEFORE\n  research    a       Running   4s\n",
			"Ahead of it:\n  NAMESPACE   NAME    PHASE     AGE     ENDS-BEFORE\n  research    a       Running   1m14s\n", ""},
		"rows left out at the end": {"NAME   AGE\na      1s\n[...]\n", "NAME   AGE\na      2s\nb      2s\n", ""},
		"left out at the end":      {"a: 1\n[...]\n", "a: 1\nb: 2\n", ""},
		"points in time":           {"at: \"2026-11-23T01:20:21Z\"", "at: \"2027-01-01T00:00:00Z\"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := new(Names).Compare(test.shown, test.actual)
			switch {
			case err == nil && test.problem != "":
				t.Errorf("no difference was found, want one with %q", test.problem)
			case err != nil && test.problem == "":
				t.Error(err)
			case err != nil && !strings.Contains(err.Error(), test.problem):
				t.Errorf("%v, want %q", err, test.problem)
			}
		})
	}
}

// The order of two jobs with generated names is random. The first commands of a page determine which of them the page
// means.
func TestANameOfThePageStaysTheSameInTheCluster(t *testing.T) {
	var names Names
	for _, pair := range [][2]string{{"job.batch/train-s2vjb created", "job.batch/train-bbbbb created"}, {"job.batch/train-rsswq created", "job.batch/train-ccccc created"}} {
		require.NoError(t, names.Compare(pair[0], pair[1]))
	}
	if got := names.InCluster("kubectl describe job train-rsswq"); got != "kubectl describe job train-ccccc" {
		t.Errorf("the command is %q", got)
	}
	err := names.Compare("NAME          PHASE\ntrain-rsswq   Enqueued\ntrain-s2vjb   Running\n", "NAME          PHASE\ntrain-bbbbb   Running\ntrain-ccccc   Enqueued\n")
	require.NoError(t, err)
	err = names.Compare("NAME          PHASE\ntrain-rsswq   Enqueued\ntrain-s2vjb   Running\n", "NAME          PHASE\ntrain-bbbbb   Enqueued\ntrain-ccccc   Running\n")
	if err == nil {
		t.Error("the jobs were swapped, and no difference was found")
	}
	// Pods of one job, created and deleted.
	require.NoError(t, names.Compare("NAME\nCreated a-22222\nCreated a-44444\nDeleted a-22222\nDeleted a-44444", "NAME\nCreated a-55555\nCreated a-66666\nDeleted a-66666\nDeleted a-55555"))
}

// A table whose rows are not aligned with the header would be compared wrongly.
func TestTheTablesOfThePagesAreAligned(t *testing.T) {
	pages, err := ReadPages(os.DirFS("../.."))
	require.NoError(t, err)
	for _, page := range pages {
		for _, command := range page.Commands {
			if err := new(Names).Compare(command.Output, command.Output); err != nil {
				t.Errorf("%s: the output differs from itself: %v", command, err)
			}
			var starts [][]int
			for whole := range strings.SplitSeq(command.Output, "\n") {
				switch {
				case whole == "":
					starts = nil
				case header.MatchString(whole):
					starts = column.FindAllStringIndex(whole, -1)
				}
				for _, at := range starts {
					if at[0] > 0 && len(whole) > at[0] && whole[at[0]-1] != ' ' {
						t.Errorf("%s: this line is not aligned with its header: %s", command, whole)
					}
				}
			}
		}
	}
}
