package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"kube-queue.dev/kube-queue/pkg/simulator/report"
)

// progressEvery is the minimum time between two updates of the line.
const progressEvery = 100 * time.Millisecond

// progress overwrites one line of the terminal.
type progress struct {
	to      io.Writer
	visible bool
	written time.Time
	text    string
}

func (o *options) newProgress(stderr io.Writer) *progress {
	p := &progress{to: stderr}
	switch o.progress {
	case progressAlways:
		p.visible = true
	case progressAuto:
		f, isFile := stderr.(*os.File)
		p.visible = isFile && term.IsTerminal(int(f.Fd()))
	}
	return p
}

// of returns the callback for progress reports on the named run.
func (p *progress) of(title string) func(finished, all int) {
	p.text, p.written = title, time.Time{}
	p.show(title)
	begin := time.Now()
	return func(finished, all int) {
		p.text = fmt.Sprintf("%s: %s of %s jobs finished", title, report.Count(int64(finished)), report.Count(int64(all)))
		if now := time.Now(); now.Sub(p.written) >= progressEvery {
			p.written = now
			p.show(fmt.Sprintf("%s, %d %%, %s", p.text, 100*finished/max(all, 1), now.Sub(begin).Round(100*time.Millisecond)))
		}
	}
}

// last returns the last reported text.
func (p *progress) last() string { return p.text }

// show overwrites the line.
func (p *progress) show(text string) {
	if p.visible {
		fmt.Fprintf(p.to, "\r\x1b[K%s", text)
	}
}

// clear empties the line for other output.
func (p *progress) clear() { p.show("") }
