package lenient

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	kjson "sigs.k8s.io/json"
)

// stream reads JSON values one by one, as they arrive.
type stream struct {
	kjson.Decoder
	from *bounded
	// raw has the text of the last object.
	raw json.RawMessage
}

// readAhead is the size of the buffer between the network and the decoder. longest is the maximum size of a value, many
// times that of an object that an API server can store.
const readAhead, longest = 64 << 10, 64 << 20

func newStream(from io.Reader) *stream {
	limited := &bounded{Reader: bufio.NewReaderSize(from, readAhead), left: longest}
	return &stream{Decoder: kjson.NewDecoderCaseSensitivePreserveInts(limited), from: limited}
}

// bounded is a reader that fails if too much is read for one value.
type bounded struct {
	io.Reader
	left int
}

func (b *bounded) Read(into []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("a JSON object is longer than %d bytes", longest)
	}
	n, err := b.Reader.Read(into)
	b.left -= n
	return n, err
}

// next decodes the next value.
func (s *stream) next(into any) error {
	err := s.Decode(into)
	s.from.left = longest
	return err
}

// object returns the text of the next object. It is valid until the next call.
func (s *stream) object() ([]byte, error) {
	s.raw = s.raw[:0]
	if err := s.next(&s.raw); err != nil {
		return nil, err
	}
	if s.raw[0] != '{' {
		return nil, fmt.Errorf("found %.20s, want a JSON object", s.raw)
	}
	return s.raw, nil
}

// members reads an object. It calls each with the name of every member; each reads the value.
func (s *stream) members(each func(name string) error) error {
	if err := s.expect('{'); err != nil {
		return err
	}
	for s.More() {
		name, err := s.Token()
		if err != nil {
			return err
		}
		if err := each(name.(string)); err != nil {
			return err
		}
	}
	return s.expect('}')
}

// elements reads an array of objects, or null, which is an empty one.
func (s *stream) elements(each func(object []byte) error) error {
	switch begin, err := s.Token(); {
	case err != nil || begin == nil:
		return err
	case begin != json.Delim('['):
		return fmt.Errorf("found %.20q, want a list", fmt.Sprint(begin))
	}
	for s.More() {
		object, err := s.object()
		if err != nil {
			return err
		}
		if err := each(object); err != nil {
			return err
		}
	}
	return s.expect(']')
}

func (s *stream) expect(want json.Delim) error {
	found, err := s.Token()
	if err == nil && found != want {
		err = fmt.Errorf("found %.20q, want %s", fmt.Sprint(found), want)
	}
	return err
}
