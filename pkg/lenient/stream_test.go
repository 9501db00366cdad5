package lenient

import (
	"io"
	"strings"
	"testing"
)

// endless repeats a byte.
type endless byte

func (e endless) Read(into []byte) (int, error) {
	for i := range into {
		into[i] = byte(e)
	}
	return len(into), nil
}

func TestATextWithoutEndIsGivenUp(t *testing.T) {
	read := newStream(io.MultiReader(strings.NewReader(`{"b":1}{"a":"`), endless('x')))
	if _, err := read.object(); err != nil || read.from.left != longest {
		t.Fatalf("after an object there may be another %d bytes, error %v", read.from.left, err)
	}
	read.from.left = readAhead // a lower limit, to be faster
	if _, err := read.object(); err == nil || !strings.Contains(err.Error(), "is longer than") {
		t.Errorf("the error is %v", err)
	}
}
