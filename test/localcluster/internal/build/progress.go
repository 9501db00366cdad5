package build

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

const (
	progressInterval = 15 * time.Second
	// keptOutput is the number of lines shown after a failed build.
	keptOutput = 200
)

// inBuildCache is the reason that the go command lists for a package that it need not compile.
const inBuildCache = "not installed but available in build cache"

// missingPackages returns the number of packages to compile. Each line has an import path, a tab,
// and the reason why the package is stale.
func missingPackages(listed string) int {
	count := 0
	for line := range strings.Lines(listed) {
		name, reason, _ := strings.Cut(strings.TrimSpace(line), "\t")
		// Packages that are not stale, such as unsafe, are not compiled.
		if name != "" && reason != "" && reason != inBuildCache {
			count++
		}
	}
	return count
}

// progress shows the progress of a build, one line at intervals.
type progress struct {
	component string
	out       io.Writer
	started   time.Time
	quit      chan struct{}
	stopped   sync.WaitGroup

	mu         sync.Mutex
	downloaded int
	total      int
	done       int
	last       string
	said       []string
}

func newProgress(component string, out io.Writer) *progress {
	p := &progress{component: component, out: out, started: time.Now(), quit: make(chan struct{})}
	fmt.Fprintln(out, p.text(p.started))
	p.stopped.Go(func() {
		ticker := time.NewTicker(progressInterval)
		defer ticker.Stop()
		for {
			select {
			case <-p.quit:
				return
			case now := <-ticker.C:
				fmt.Fprintln(out, p.text(now))
			}
		}
	})
	return p
}

// stop stops the output.
func (p *progress) stop() {
	close(p.quit)
	p.stopped.Wait()
}

// compiling sets the number of packages to compile.
func (p *progress) compiling(total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total, p.done, p.said = total, 0, nil
}

// read processes the lines of the go command until their end.
func (p *progress) read(from io.Reader) {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		p.line(lines.Text())
	}
	// The command must not wait because a line is too long for the scanner.
	_, _ = io.Copy(io.Discard, from)
}

// line processes a line of the go command: a download, the package being compiled, or other output,
// which is kept for errors.
func (p *progress) line(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch module, isDownload := strings.CutPrefix(line, "go: downloading "); {
	case isDownload:
		p.downloaded++
		p.last = module
	case p.total > 0 && !strings.Contains(line, " ") && !strings.HasPrefix(line, "#"):
		p.done++
		p.last = line
	default:
		p.said = append(p.said, line)
		if len(p.said) > keptOutput {
			p.said = p.said[1:]
		}
	}
}

// output returns the other output of the go command.
func (p *progress) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.said, "\n")
}

// text returns the line to show.
func (p *progress) text(now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	elapsed := now.Sub(p.started).Truncate(time.Second)
	switch {
	case p.total > 0 && p.done >= p.total:
		return fmt.Sprintf("building %s: linking, %v", p.component, elapsed)
	case p.total > 0:
		return fmt.Sprintf("building %s: %d of %d packages (%d%%), %v  %s", p.component, p.done, p.total, p.done*100/p.total, elapsed, p.last)
	case p.downloaded > 0:
		return fmt.Sprintf("building %s: %d modules downloaded, %v  %s", p.component, p.downloaded, elapsed, p.last)
	default:
		return fmt.Sprintf("building %s: listing packages, %v", p.component, elapsed)
	}
}
