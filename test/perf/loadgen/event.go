package loadgen

import (
	"bytes"
	"errors"
)

// Event is an event of a watch with the fields that the load generator needs. Its bytes are part of
// the line that was read.
type Event struct {
	Type, Namespace, Name, Version, Phase, Reason []byte
}

var errNoJSON = errors.New("the line is not a watch event in JSON")

// read parses an event from a line of a watch. It skips fields that are not needed without parsing
// them.
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

// part reads the needed values of one field of the object.
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
			return // the status in an error event is a string
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

// cursor parses JSON of an API server. It does not validate it.
type cursor struct {
	text   []byte
	at     int
	broken bool
}

// peek returns the next byte that is not a space, or 0 at the end.
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

// take skips an expected byte.
func (c *cursor) take(b byte) {
	if c.peek() != b {
		c.broken = true
		c.at = len(c.text)
		return
	}
	c.at++
}

// object calls visit at the value of each key. It skips values that visit does not read.
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

// str reads a string without unescaping. Names, versions and phases contain no escapes.
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

// skip skips a value.
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

// word skips a number, true, false or null.
func (c *cursor) word() {
	for c.at < len(c.text) {
		switch c.text[c.at] {
		case ',', '}', ']', ' ', '\t', '\n', '\r':
			return
		}
		c.at++
	}
}
