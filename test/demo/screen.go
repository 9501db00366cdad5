package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// screen shows frames. On a terminal it overwrites the previous table, else it prints the
// rows that have changed.
type screen struct {
	out      io.Writer
	terminal bool
	// width returns the current width of the terminal; 0 if it is unknown.
	width func() int
	// kinds reports whether the jobs are of more than one kind.
	kinds                            bool
	kindWidth, nameWidth, stateWidth int
	before                           frame
}

// newScreen prepares a table of the jobs and prints its header.
func newScreen(out *os.File, jobs []job) *screen {
	s := layOut(out, jobs)
	s.terminal = term.IsTerminal(int(out.Fd())) && os.Getenv("TERM") != "dumb"
	s.width = func() int {
		width, _, err := term.GetSize(int(out.Fd()))
		if err != nil {
			return 0
		}
		return width
	}
	fmt.Fprintln(out)
	s.head()
	return s
}

// layOut makes the columns wide enough for the jobs and most states. The states of some kinds
// are longer.
func layOut(out io.Writer, jobs []job) *screen {
	s := &screen{out: out, nameWidth: 6, stateWidth: 11, width: func() int { return 0 }}
	for _, j := range jobs {
		if j.kind != jobs[0].kind {
			s.kinds, s.stateWidth = true, len("Initializing")
		}
		s.kindWidth, s.nameWidth = max(s.kindWidth, len(j.Kind)), max(s.nameWidth, len(j.name))
	}
	return s
}

func (s *screen) head() { s.print(s.line("TIME    ", "KIND", "JOB", "STATE", "UNIT", "REASON")) }

func (s *screen) line(time, kind, name, state, phase, why string) string {
	line := time + " "
	if s.kinds {
		line += fmt.Sprintf("%-*s ", s.kindWidth, kind)
	}
	line += fmt.Sprintf("%-*s %-*s %-10s %s", s.nameWidth, name, s.stateWidth, cut(state, s.stateWidth), phase, why)
	return strings.TrimRight(line, " ")
}

// print prints a line. On a terminal the line is cut to one row, because the next frame
// overwrites one row per line.
func (s *screen) print(line string) {
	if !s.terminal {
		fmt.Fprintln(s.out, line)
		return
	}
	if width := s.width(); width > 0 {
		line = cut(line, width)
	}
	fmt.Fprintln(s.out, line+"\x1b[K")
}

// cut shortens a text to the width and marks the cut with an ellipsis.
func cut(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	return string(runes[:width-1]) + "…"
}

func (s *screen) show(f frame) {
	again := s.terminal || len(s.before.rows) == 0
	if s.terminal {
		s.up(len(s.before.rows))
	}
	for i, r := range f.rows {
		if again || s.before.rows[i] != r {
			s.print(s.row(f.after, r))
		}
	}
	s.before = f
}

func (s *screen) row(after time.Duration, r row) string {
	why := r.reason
	if r.message != "" {
		why += ": " + r.message
	}
	return s.line(fmt.Sprintf("%7.1fs", after.Seconds()), r.job.Kind, r.job.name, r.state, r.phase, why)
}

// say prints a text; on a terminal above the table.
func (s *screen) say(text string) {
	if s.terminal {
		s.up(len(s.before.rows) + 1)
	}
	for line := range strings.Lines(text) {
		s.print(strings.TrimSuffix(line, "\n"))
	}
	if s.terminal {
		s.head()
		f := s.before
		s.before = frame{}
		s.show(f)
	}
}

func (s *screen) up(rows int) {
	if rows > 0 {
		fmt.Fprintf(s.out, "\x1b[%dA", rows)
	}
}
