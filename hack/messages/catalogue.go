package main

import (
	"cmp"
	"fmt"
	"go/constant"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// maxAlternatives bounds in how many forms a text is listed that is put together of
// several. Beyond that, the text is listed with %s, and what is inserted on its own.
const maxAlternatives = 24

// message is an entry of the catalogue.
type message struct {
	// text is the message as a format.
	text string
	// part: the text is only found inside of other messages.
	part bool
	// packages that write it, sorted.
	packages []string
}

// problem is a place where a message is built in a way that cannot be catalogued.
type problem struct {
	pos  token.Position
	text string
}

func (p problem) String() string { return fmt.Sprintf("%s: %s", p.pos, p.text) }

// collector collects the messages that reach sinks of one kind.
type collector struct {
	*flow
	seen     map[visited]bool
	found    map[string]*message
	problems map[problem]bool
	// joining are the texts that are being put together: one that contains itself, as a loop
	// does that appends to a text, is not put together again.
	joining map[ssa.Value]bool
}

type visited struct {
	node
	as role
}

// role is what a value is for a message.
type role int

const (
	// direct: the message is the value, or an error that the message passes on.
	direct role = iota
	// operand: the value is among what is printed in a message. Errors among these are
	// messages of their own.
	operand
	// inside: the value is inserted into a message.
	inside
)

func newCollector(f *flow) *collector {
	return &collector{flow: f, seen: map[visited]bool{}, found: map[string]*message{}, problems: map[problem]bool{}, joining: map[ssa.Value]bool{}}
}

// messages returns what was found: first texts that are messages, then parts of messages,
// each sorted.
func (c *collector) messages() []message {
	var list []message
	for _, m := range c.found {
		slices.Sort(m.packages)
		list = append(list, *m)
	}
	slices.SortFunc(list, func(a, b message) int {
		if a.part != b.part {
			if b.part {
				return -1
			}
			return 1
		}
		return compareTexts(a.text, b.text)
	})
	return list
}

// allProblems returns the problems by their place.
func (c *collector) allProblems() []problem {
	return slices.SortedFunc(maps.Keys(c.problems), func(a, b problem) int {
		return cmp.Or(strings.Compare(a.pos.Filename, b.pos.Filename), a.pos.Offset-b.pos.Offset, strings.Compare(a.text, b.text))
	})
}

// visit collects the messages that a value may be.
func (c *collector) visit(start node) {
	todo := []visited{{start, direct}}
	for len(todo) > 0 {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if v.value.Parent() != nil {
			v.in = nil // the value knows it
		}
		if v.as == operand && isError(v.value) {
			v.as = direct
		}
		if c.seen[v] || c.seen[visited{v.node, direct}] {
			continue
		}
		c.seen[v] = true
		s := c.step(v.node)
		if s.problem != "" {
			c.fail(v.node, s.problem)
		}
		for _, n := range s.from {
			todo = append(todo, visited{n, v.as})
		}
		for _, n := range s.within {
			as := v.as
			if as == direct && !isErrorType(n.value.Type()) && !isErrorType(v.value.Type()) {
				as = inside
			}
			todo = append(todo, visited{n, as})
		}
		for _, n := range s.inside {
			todo = append(todo, visited{n, inside})
		}
		if s.root == nil {
			continue
		}
		c.joining[v.value] = true
		forms := c.expand(s.root, v.node)
		delete(c.joining, v.value)
		for _, a := range forms {
			c.record(a.text, v.as != direct, s.root, v.node)
			as := inside
			if v.as == direct {
				as = operand
			}
			for _, n := range a.inserted {
				todo = append(todo, visited{n, as})
			}
		}
	}
}

// isError reports whether the value is an error, or one in an interface.
func isError(v ssa.Value) bool {
	switch v := v.(type) {
	case *ssa.ChangeInterface:
		return isErrorType(v.X.Type())
	case *ssa.MakeInterface:
		return implementsError(v.X.Type())
	default:
		return isErrorType(v.Type())
	}
}

var (
	verb  = regexp.MustCompile(`%[-+# 0]*(\[\d+\])?[\d*]*(\.[\d*]+)?[a-zA-Z]`)
	prose = regexp.MustCompile(`[A-Za-z]{2}`)
	// phrase matches a part of a sentence, and no single name.
	phrase = regexp.MustCompile(`[A-Za-z]{2}[^ ]* | [^ ]*[A-Za-z]{2}`)
)

// record adds a text to the catalogue, unless it has no words, or is a single name that is
// inserted into a message.
func (c *collector) record(text string, part bool, r *root, n node) {
	text = strings.TrimSuffix(text, "\n")
	words := strings.TrimSpace(verb.ReplaceAllString(text, "_"))
	if !prose.MatchString(words) || part && !r.isError && !phrase.MatchString(words) {
		return
	}
	in := r.in
	if in == nil {
		in = n.function()
	}
	if in == nil {
		return
	}
	pkg := packageOf(in)
	if isGenerated(pkg) {
		return
	}
	m := c.found[text]
	if m == nil {
		m = &message{text: text, part: true}
		c.found[text] = m
	}
	m.part = m.part && part
	if !slices.Contains(m.packages, pkg) {
		m.packages = append(m.packages, pkg)
	}
}

// isGenerated reports whether the texts of a package are those of the generators of
// Kubernetes.
func isGenerated(pkg string) bool { return strings.Contains(pkg, "/pkg/generated/") }

func (c *collector) fail(n node, text string) {
	c.problems[problem{c.position(n), text}] = true
}

// position of a value, or of the function that has it.
func (c *collector) position(n node) token.Position {
	pos := n.value.Pos()
	if !pos.IsValid() && n.function() != nil {
		pos = n.function().Pos()
	}
	return c.fset.Position(pos)
}

// alternative is one form of a text.
type alternative struct {
	// text as a format.
	text string
	// inserted are the values for its verbs.
	inserted []node
	// isData: the text, or a part of it, was not written by the program.
	isData bool
}

// expand returns the forms of a text.
func (c *collector) expand(r *root, n node) []alternative {
	switch {
	case r.constant != nil:
		return []alternative{{text: escape(constant.StringVal(r.constant.Value))}}
	case r.isError && r.left != nil: // errors.New
		return c.alternatives(*r.left, maxAlternatives, false)
	case r.left != nil:
		return c.join(*r.left, *r.right, maxAlternatives, false)
	case r.format != nil:
		return c.formatted(r, n)
	default:
		return []alternative{{inserted: r.args}}
	}
}

// formatted returns the forms of a text that is written by a format.
func (c *collector) formatted(r *root, n node) []alternative {
	formats := c.alternatives(*r.format, 1000, true)
	for i, a := range formats {
		if a.isData {
			c.fail(n, "the format of a message is not constant; write it as a constant, and insert what varies with a verb")
			return []alternative{{inserted: r.args}}
		}
		formats[i].inserted = append(a.inserted, r.args...)
	}
	return formats
}

// join returns the forms of two texts one after the other.
func (c *collector) join(left, right node, most int, asFormat bool) []alternative {
	var joined []alternative
	lefts, rights := c.alternatives(left, most, asFormat), c.alternatives(right, most, asFormat)
	for _, l := range lefts {
		for _, r := range rights {
			if r.text == "" && len(rights) > 1 && strings.HasSuffix(l.text, " ") {
				continue // the code first checks that there is something to add
			}
			joined = append(joined, alternative{l.text + r.text, slices.Concat(l.inserted, r.inserted), l.isData || r.isData})
		}
	}
	return joined
}

// alternatives returns the forms of a text that becomes part of another one. What cannot be
// joined with it is inserted: the form is %s.
func (c *collector) alternatives(start node, most int, asFormat bool) []alternative {
	inserted := []alternative{{text: "%s", inserted: []node{start}, isData: true}}
	var forms []alternative
	seen := map[node]bool{}
	todo := []node{start}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[n] {
			continue
		}
		seen[n] = true
		s := c.step(n)
		switch {
		case s.root != nil && s.root.constant != nil && asFormat:
			forms = append(forms, alternative{text: constant.StringVal(s.root.constant.Value)})
		case c.joining[n.value]:
			return inserted
		case s.root != nil && s.root.left != nil && !s.root.isError:
			c.joining[n.value] = true
			forms = append(forms, c.join(*s.root.left, *s.root.right, most, asFormat)...)
			delete(c.joining, n.value)
		case s.root != nil && asFormat:
			return inserted
		case s.root != nil && !s.root.isError && (s.root.constant != nil || s.root.format != nil):
			c.joining[n.value] = true
			forms = append(forms, c.expand(s.root, n)...)
			delete(c.joining, n.value)
		case len(s.from) > 0 && len(s.within) == 0 && len(s.inside) == 0:
			todo = append(todo, s.from...)
		default:
			return inserted
		}
		if len(forms) > most {
			return inserted
		}
	}
	if len(forms) == 0 {
		return inserted
	}
	return forms
}

// escape writes a constant as a format.
func escape(text string) string { return strings.ReplaceAll(text, "%", "%%") }
