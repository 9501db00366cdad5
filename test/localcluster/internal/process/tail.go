package process

import (
	"io"
	"os"
	"strings"
)

// tailBytes is the number of bytes at the end of the file that Tail reads.
const tailBytes = 64 << 10

// Tail returns the last lines of a file, or "" if it cannot be read. It returns no error, because
// it is used to describe other errors.
func Tail(path string, lines int) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return ""
	}
	if _, err := file.Seek(max(0, info.Size()-tailBytes), io.SeekStart); err != nil {
		return ""
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return ""
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
