package lenient

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// texts splits a stream of JSON into objects. It only searches for the end of each object, which is
// several times as fast as checking its syntax. The decoder checks the syntax.
type texts struct {
	stream io.Reader
	// buffer[from:to] was read from the stream and not returned yet.
	buffer   []byte
	from, to int
}

// firstBuffer and lastBuffer are the sizes of the buffer. It is doubled for an object that is
// larger, up to many times the size of an object that an API server can store.
const firstBuffer, lastBuffer = 64 << 10, 64 << 20

func newTexts(stream io.Reader) *texts {
	return &texts{stream: stream, buffer: make([]byte, firstBuffer)}
}

// next returns the text of the next object or array and the space before it. The text is valid
// until the next read. The error is io.EOF if the stream ends before an object and
// io.ErrUnexpectedEOF if it ends within one.
func (t *texts) next() ([]byte, error) { return t.read(span{}) }

// read returns the text up to the end of the span.
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

// fill moves the rest of the text to the beginning of the buffer and reads more.
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

// cutOff returns the error of a stream that must not end yet.
func cutOff(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// peek returns the next byte that is not space, without reading it.
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

// expect reads the next byte that is not space, which must be one of these.
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

// members reads an object. It calls each with the name of every member; each reads the value.
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

// sequence reads what is between the brackets. each reads what is between two commas.
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

// span finds the end of an object, an array or a string in a text that grows. A span that is begun
// and quoted is the rest of a string.
type span struct {
	// length is the length of the text that was scanned.
	length        int
	begun, quoted bool
	depth         int
}

// see continues the scan and reports whether the span is complete.
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

// skipString moves behind the closing quote of the string. It returns false if the text does not
// contain it yet.
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
		case escape >= 0: // not skipped until the escaped byte is there
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
