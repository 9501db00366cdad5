package install

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// from is the commit whose chart and programs the upgrade starts from. Without it, the upgrade only changes settings.
var from = flag.String("from", "", "the commit of the release that is upgraded from, and rolled back to")

// earlier is the release before the upgrade, or nil for the release under test.
var earlier *earlierRelease

// earlierRelease is a release of another commit.
type earlierRelease struct {
	// tag of its images.
	tag string
	// chart and programs are its folders.
	chart, programs string
}

// build extracts the source of a commit from the repository and builds its programs.
func build(folder, commit string) (*earlierRelease, error) {
	source := filepath.Join(folder, "source")
	r := &earlierRelease{
		tag: "from-" + commit, chart: filepath.Join(source, "charts", "kube-queue"), programs: filepath.Join(folder, "programs"),
	}
	if err := os.Mkdir(source, 0o755); err != nil {
		return nil, fmt.Errorf("making a folder for commit %s: %w", commit, err)
	}
	script := exec.Command("bash", "-euo", "pipefail", "-c", `
git -C "$(git rev-parse --show-toplevel)" archive "$1" | tar --extract --directory "$2"
cd "$2"
go build -buildvcs=false -o "$3/" ./cmd/kube-queue-controller ./cmd/job-extensions`, "build", commit, source, r.programs)
	if out, err := script.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building commit %s, which a shallow clone may lack: %w\n%s", commit, err, out)
	}
	return r, nil
}

// firstChart is the chart that is installed first, and after the rollback.
func firstChart() string {
	if earlier != nil {
		return earlier.chart
	}
	return chart()
}

// firstValues are the values of firstChart.
func (s *stage) firstValues() []string {
	if earlier != nil {
		return s.values("image: {tag: " + earlier.tag + "}")
	}
	return s.values("")
}
