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

// bufferSize is larger than almost every line of a log.
const bufferSize = 1 << 20

// Lines visits the lines of a log, which may be compressed with gzip, with their numbers
// from 1. It skips an incomplete last line and reports it. An error of the visitor stops the
// reading and is returned.
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

// lines visits complete lines including their line ends.
func lines(r *bufio.Reader, visit func(line []byte) error) (unfinished bool, err error) {
	for {
		line, err := r.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return len(bytes.TrimSpace(line)) > 0, nil
		case err != nil:
			return false, err
		}
		if err := visit(line); err != nil {
			return false, err
		}
	}
}

// File is a log that may still be growing. Each Read continues where the previous one ended.
type File struct {
	path   string
	offset int64
	number int
}

// Open returns a File that starts at the beginning of the log. The log need not exist yet.
func Open(path string) *File { return &File{path: path} }

// Read visits the lines that were added since the previous call, as Lines does. An incomplete
// last line is left for the next call.
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
