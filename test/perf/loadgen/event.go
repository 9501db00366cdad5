package loadgen

import (
	"bytes"
	"errors"
)

// Event is an event of a watch with the fields that the player reads. The bytes are those
// of the line that was read.
type Event struct {
	Type, Namespace, Name, Version, Phase, Reason []byte
}

var errNoJSON = errors.New("no JSON that could be an event")

// read takes an event from a line of a watch. All that is of no use is passed over
// without a look inside.
func (e *Event) read(line []byte) error {
	*e = Event{}
	c := cursor{text: line}
	c.object(func(key []byte) {
		switch string(key) {
		case "type":
			e.Type = c.str()
		case "object":
			c.object(func(key []byte) { e.part(&c, key) })
		}
	})
	if c.broken || e.Type == nil {
		return errNoJSON
	}
	return nil
}

// part takes what is wanted of one field of the object.
func (e *Event) part(c *cursor, key []byte) {
	switch string(key) {
	case "metadata":
		c.object(func(key []byte) {
			switch string(key) {
			case "namespace":
				e.Namespace = c.str()
			case "name":
				e.Name = c.str()
			case "resourceVersion":
				e.Version = c.str()
			}
		})
	case "status":
		if c.peek() != '{' {
			return // an error's status is a word
		}
		c.object(func(key []byte) {
			switch string(key) {
			case "phase":
				e.Phase = c.str()
			case "reason":
				e.Reason = c.str()
			}
		})
	}
}

// cursor goes through JSON that an API server has written, and trusts it to be JSON.
type cursor struct {
	text   []byte
	at     int
	broken bool
}

// peek is the next byte that is no space; 0 at the end.
func (c *cursor) peek() byte {
	for c.at < len(c.text) {
		switch b := c.text[c.at]; b {
		case ' ', '\t', '\n', '\r':
			c.at++
		default:
			return b
		}
	}
	return 0
}

// take steps over a byte that must be there.
func (c *cursor) take(b byte) {
	if c.peek() != b {
		c.broken = true
		c.at = len(c.text)
		return
	}
	c.at++
}

// object calls visit at the value of each key; what visit does not read is passed over.
func (c *cursor) object(visit func(key []byte)) {
	c.take('{')
	for !c.broken && c.peek() != '}' {
		key := c.str()
		c.take(':')
		if c.broken {
			return
		}
		c.peek()
		before := c.at
		visit(key)
		if c.at == before {
			c.skip()
		}
		if c.peek() == ',' {
			c.at++
		}
	}
	c.take('}')
}

// str reads a string without unescaping; names, versions and phases hold nothing escaped.
func (c *cursor) str() []byte {
	c.take('"')
	start := c.at
	for !c.broken {
		end := bytes.IndexByte(c.text[c.at:], '"')
		if end < 0 {
			c.broken = true
			c.at = len(c.text)
			break
		}
		c.at += end + 1
		if !c.escaped(start, c.at-1) {
			return c.text[start : c.at-1]
		}
	}
	return nil
}

// escaped reports whether an odd number of backslashes precedes the byte.
func (c *cursor) escaped(start, at int) bool {
	odd := false
	for at--; at >= start && c.text[at] == '\\'; at-- {
		odd = !odd
	}
	return odd
}

// skip passes over a value.
func (c *cursor) skip() {
	depth := 0
	for !c.broken {
		switch c.peek() {
		case '"':
			c.str()
		case '{', '[':
			depth++
			c.at++
		case '}', ']':
			depth--
			c.at++
		case ',', ':':
			c.at++
			continue
		case 0:
			c.broken = true
		default:
			c.word()
		}
		if depth <= 0 {
			return
		}
	}
}

// word passes over a number, true, false or null.
func (c *cursor) word() {
	for c.at < len(c.text) {
		switch c.text[c.at] {
		case ',', '}', ']', ' ', '\t', '\n', '\r':
			return
		}
		c.at++
	}
}
