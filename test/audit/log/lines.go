package log

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
)

// bufferSize holds nearly every line of a log at once.
const bufferSize = 1 << 20

// Lines visits the lines of a log, which may be compressed by gzip, with their numbers
// from 1. A last line without an end is left out and reported. The visitor must not keep
// the line's bytes; its error ends the reading and is returned.
func Lines(r io.Reader, visit func(number int, line []byte) error) (unfinished bool, err error) {
	buffered := bufio.NewReaderSize(r, bufferSize)
	if magic, err := buffered.Peek(2); err == nil && bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return false, err
		}
		buffered = bufio.NewReaderSize(unzipped, bufferSize)
	}
	number := 0
	return lines(buffered, func(line []byte) error {
		number++
		return visit(number, bytes.TrimSpace(line))
	})
}

// lines visits whole lines with their ends.
func lines(r *bufio.Reader, visit func(line []byte) error) (unfinished bool, err error) {
	var long []byte // the parts so far of a line that is longer than the buffer
	for {
		part, err := r.ReadSlice('\n')
		line := part
		if len(long) > 0 {
			long = append(long, part...)
			line = long
		}
		switch {
		case err == nil:
		case errors.Is(err, bufio.ErrBufferFull):
			if len(long) == 0 {
				long = append(long, part...)
			}
			continue
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return len(bytes.TrimSpace(line)) > 0, nil
		default:
			return false, err
		}
		if err := visit(line); err != nil {
			return false, err
		}
		long = long[:0]
	}
}

// File is a log that may still be growing. It is read in parts, each beginning where
// the one before has ended.
type File struct {
	path   string
	offset int64
	number int
}

// Open reads a log from its beginning. It need not exist yet.
func Open(path string) *File { return &File{path: path} }

// Read visits the lines that have come since the part before, as Lines does. A last
// line that is not whole yet is left for the next part.
func (f *File) Read(visit func(number int, line []byte) error) error {
	file, err := os.Open(f.path)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	defer file.Close()
	if _, err := file.Seek(f.offset, io.SeekStart); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	_, err = lines(bufio.NewReaderSize(file, bufferSize), func(line []byte) error {
		f.offset += int64(len(line))
		f.number++
		return visit(f.number, bytes.TrimSpace(line))
	})
	if err != nil {
		return fmt.Errorf("audit log %s: %w", f.path, err)
	}
	return nil
}
