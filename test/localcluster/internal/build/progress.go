package build

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

const (
	terminalInterval = 200 * time.Millisecond
	logInterval      = 15 * time.Second
	// keptOutput is how many lines of a failed compiler are shown.
	keptOutput = 200
)

// inBuildCache is what the go command says of a package that it need not compile.
const inBuildCache = "not installed but available in build cache"

// missingPackages counts, in the lines "import path, tab, reason why it is
// stale", the packages that have to be compiled.
func missingPackages(listed string) int {
	count := 0
	for line := range strings.Lines(listed) {
		name, reason, _ := strings.Cut(strings.TrimSpace(line), "\t")
		// Packages that are not stale at all, as unsafe, are not compiled either.
		if name != "" && reason != "" && reason != inBuildCache {
			count++
		}
	}
	return count
}

// progress shows the progress of a build: one line that is rewritten on a
// terminal, otherwise a line now and then.
type progress struct {
	component string
	out       io.Writer
	terminal  bool
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

func newProgress(component string, out io.Writer, terminal bool) *progress {
	p := &progress{component: component, out: out, terminal: terminal, started: time.Now(), quit: make(chan struct{})}
	interval := logInterval
	if terminal {
		interval = terminalInterval
	}
	p.print()
	p.stopped.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-p.quit:
				return
			case <-ticker.C:
				p.print()
			}
		}
	})
	return p
}

// compiling reports how many packages have to be compiled.
func (p *progress) compiling(total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total, p.done, p.said = total, 0, nil
}

// line takes a line the go command says: a download, the name of a package that
// it compiles now, or something else, which is kept for the case of a failure.
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

// output is the other output of the go command.
func (p *progress) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.said, "\n")
}

// text is the line to show.
func (p *progress) text(now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	elapsed := now.Sub(p.started).Truncate(time.Second)
	switch {
	case p.total > 0 && p.done >= p.total:
		return fmt.Sprintf("building %s: linking, %v", p.component, elapsed)
	case p.total > 0:
		return fmt.Sprintf("building %s: %d of %d packages (%d%%), %v  %s", p.component, p.done, p.total, percent(p.done, p.total), elapsed, p.last)
	case p.downloaded > 0:
		return fmt.Sprintf("building %s: %d modules downloaded, %v  %s", p.component, p.downloaded, elapsed, p.last)
	default:
		return fmt.Sprintf("building %s: listing packages, %v", p.component, elapsed)
	}
}

func (p *progress) print() {
	if p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[K%.110s", p.text(time.Now()))
		return
	}
	fmt.Fprintln(p.out, p.text(time.Now()))
}

func (p *progress) finished() {
	p.stop()
	fmt.Fprintf(p.out, "built %s in %v\n", p.component, time.Since(p.started).Truncate(100*time.Millisecond))
}

// stop ends the line on a terminal; it may be called again.
func (p *progress) stop() {
	select {
	case <-p.quit:
		return
	default:
	}
	close(p.quit)
	p.stopped.Wait()
	if p.terminal {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

// percent never says 100 before all is done.
func percent(done, total int) int {
	if total <= 0 {
		return 0
	}
	return min(done, total) * 100 / total
}

// lineWriter hands on whole lines.
type lineWriter struct {
	line func(string)
	rest []byte
}

func (w *lineWriter) Write(data []byte) (int, error) {
	w.rest = append(w.rest, data...)
	for {
		line, rest, found := bytes.Cut(w.rest, []byte("\n"))
		if !found {
			return len(data), nil
		}
		w.line(strings.TrimRight(string(line), "\r"))
		w.rest = rest
	}
}

// flush hands on a last line that has no end.
func (w *lineWriter) flush() {
	if len(w.rest) > 0 {
		w.line(string(w.rest))
		w.rest = nil
	}
}
