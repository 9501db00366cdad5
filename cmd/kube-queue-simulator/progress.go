package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"kube-queue.dev/kube-queue/pkg/simulator/report"
)

// progressEvery is how often a line is written at most.
const progressEvery = 100 * time.Millisecond

// progress writes one line over and over.
type progress struct {
	to      io.Writer
	shown   bool
	written time.Time
	text    string
}

func (o *options) newProgress(stderr io.Writer) *progress {
	p := &progress{to: stderr}
	switch o.progress {
	case progressAlways:
		p.shown = true
	case progressAuto:
		f, isFile := stderr.(*os.File)
		p.shown = isFile && term.IsTerminal(int(f.Fd()))
	}
	return p
}

// of is what the simulator calls while it plays what has that name.
func (p *progress) of(title string) func(ended, all int) {
	p.text, p.written = title, time.Time{}
	p.say(title)
	begin := time.Now()
	return func(ended, all int) {
		p.text = fmt.Sprintf("%s: %s of %s jobs have ended", title, report.Count(int64(ended)), report.Count(int64(all)))
		if now := time.Now(); now.Sub(p.written) >= progressEvery {
			p.written = now
			p.say(fmt.Sprintf("%s, %d %%, %s", p.text, 100*ended/max(all, 1), now.Sub(begin).Round(100*time.Millisecond)))
		}
	}
}

// last is what was said last.
func (p *progress) last() string { return p.text }

// say writes over what stands there.
func (p *progress) say(text string) {
	if p.shown {
		fmt.Fprintf(p.to, "\r\x1b[K%s", text)
	}
}

// clear leaves the line empty for others.
func (p *progress) clear() { p.say("") }
