package lenient

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// texts reads JSON from a stream, an object at a time. Of an object it only looks for where
// it ends, which is several times as fast as to check meanwhile whether it is JSON; whoever
// decodes it checks that.
type texts struct {
	stream io.Reader
	// buffer[from:to] was read and not returned yet.
	buffer   []byte
	from, to int
}

// An object that is larger than the buffer has it doubled, up to many times of what an API
// server stores of one: what is larger is no good JSON.
const firstBuffer, lastBuffer = 64 << 10, 64 << 20

func newTexts(stream io.Reader) *texts {
	return &texts{stream: stream, buffer: make([]byte, firstBuffer)}
}

// next returns the text of the next object or array and the space before it, which is good
// until something else is read. It fails with io.EOF when the stream ends before one, and
// with io.ErrUnexpectedEOF when it ends within one.
func (t *texts) next() ([]byte, error) { return t.read(span{}) }

// read returns what the span has before it, and the span.
func (t *texts) read(seen span) ([]byte, error) {
	for {
		done, err := seen.see(t.buffer[t.from:t.to])
		if err != nil {
			return nil, err
		}
		if done {
			text := t.buffer[t.from : t.from+seen.length]
			t.from += seen.length
			return text, nil
		}
		if err := t.fill(); err != nil {
			if seen.begun {
				err = cutOff(err)
			}
			return nil, err
		}
	}
}

// fill moves what is left to the buffer's beginning and reads more after it.
func (t *texts) fill() error {
	t.to = copy(t.buffer, t.buffer[t.from:t.to])
	t.from = 0
	if t.to == lastBuffer {
		return fmt.Errorf("a JSON object is longer than %d bytes", lastBuffer)
	}
	if t.to == len(t.buffer) {
		t.buffer = append(t.buffer, make([]byte, len(t.buffer))...)
	}
	n, err := t.stream.Read(t.buffer[t.to:])
	t.to += n
	if n > 0 {
		return nil // an error is reported again
	}
	return err
}

// cutOff is the error of a stream that may not end yet.
func cutOff(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// peek is the next byte that is no space. It is still to be read.
func (t *texts) peek() (byte, error) {
	for {
		for ; t.from < t.to; t.from++ {
			if c := t.buffer[t.from]; !isSpace(c) {
				return c, nil
			}
		}
		if err := t.fill(); err != nil {
			return 0, err
		}
	}
}

// expect reads the next byte that is no space, which is to be one of these.
func (t *texts) expect(these string) (byte, error) {
	c, err := t.peek()
	if err != nil {
		return 0, err
	}
	if bytes.IndexByte([]byte(these), c) < 0 {
		return 0, fmt.Errorf("found %q, want one of %q", c, these)
	}
	t.from++
	return c, nil
}

// members reads an object. Each is reported the name of every member, and reads its value.
func (t *texts) members(each func(name string) error) error {
	return t.sequence('{', '}', func() error {
		if _, err := t.expect(`"`); err != nil {
			return err
		}
		name, err := t.read(span{begun: true, quoted: true})
		if err != nil {
			return err
		}
		member := string(name[:len(name)-1])
		if _, err := t.expect(":"); err != nil {
			return err
		}
		return each(member)
	})
}

// elements reads an array of objects, or null, which is an empty one.
func (t *texts) elements(each func(object []byte) error) error {
	if c, err := t.peek(); err == nil && c == 'n' {
		return t.skip()
	}
	return t.sequence('[', ']', func() error {
		object, err := t.next()
		if err != nil {
			return err
		}
		return each(object)
	})
}

// sequence reads what stands between the brackets; each reads what stands between two
// commas.
func (t *texts) sequence(begin, end byte, each func() error) error {
	if _, err := t.expect(string(begin)); err != nil {
		return err
	}
	switch c, err := t.peek(); {
	case err != nil:
		return err
	case c == end:
		t.from++
		return nil
	}
	for {
		if err := each(); err != nil {
			return err
		}
		if c, err := t.expect("," + string(end)); err != nil || c == end {
			return err
		}
	}
}

// skip reads a value of any kind.
func (t *texts) skip() error {
	c, err := t.peek()
	switch {
	case err != nil:
		return err
	case c == '"':
		t.from++
		_, err = t.read(span{begun: true, quoted: true})
		return err
	case c == '{' || c == '[':
		_, err = t.next()
		return err
	}
	for bytes.IndexByte([]byte(",]}"), c) < 0 { // a number or a word
		t.from++
		if c, err = t.peek(); err != nil {
			return err
		}
	}
	return nil
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// span finds the end of an object, an array or a string in a text of which more and more
// is known. One that is begun and quoted is the rest of a string.
type span struct {
	// length of what was seen.
	length        int
	begun, quoted bool
	depth         int
}

// see goes on where it stopped, and reports whether all is there.
func (s *span) see(text []byte) (done bool, err error) {
	for s.length < len(text) {
		if s.quoted {
			if !s.skipString(text) {
				return false, nil
			}
			if s.depth == 0 {
				return true, nil
			}
			continue
		}
		c := text[s.length]
		s.length++
		switch {
		case c == '{' || c == '[':
			s.begun = true
			s.depth++
		case !s.begun:
			if !isSpace(c) {
				return false, fmt.Errorf("found %q, want the beginning of a JSON object", c)
			}
		case c == '"':
			s.quoted = true
		case c == '}' || c == ']':
			s.depth--
			if s.depth == 0 {
				return true, nil
			}
		}
	}
	return false, nil
}

// skipString goes to behind the string's closing quote; false when that is not there yet.
func (s *span) skipString(text []byte) bool {
	for {
		rest := text[s.length:]
		quote := bytes.IndexByte(rest, '"')
		if quote >= 0 {
			rest = rest[:quote]
		}
		switch escape := bytes.IndexByte(rest, '\\'); {
		case escape >= 0 && s.length+escape+1 < len(text):
			s.length += escape + 2
		case escape >= 0: // left alone until what it escapes is there
			s.length += escape
			return false
		case quote >= 0:
			s.length += quote + 1
			s.quoted = false
			return true
		default:
			s.length = len(text)
			return false
		}
	}
}
