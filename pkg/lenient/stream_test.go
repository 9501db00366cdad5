package lenient

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// Objects are complete, whatever is in and between them and however the network splits them.
func TestAStreamIsCutIntoItsObjects(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.OneOf(
			rapid.StringOf(rapid.SampledFrom([]rune(`{}[]"\ aé:,`))).AsAny(),
			rapid.Just[any](nil), rapid.Just[any](map[string]any{}), rapid.Just[any]([]any{"}", `\"`}),
			rapid.Map(rapid.IntRange(0, 300_000), func(n int) any { return strings.Repeat("x", n) }),
		)
		var text strings.Builder
		var want []string
		for range rapid.IntRange(0, 5).Draw(t, "objects") {
			object := map[string]any{"a": values.Draw(t, "a"), `b{"\`: map[string]any{"c": values.Draw(t, "c")}}
			one, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, string(one))
			text.WriteString(rapid.SampledFrom([]string{"", "\n", " \r\n\t"}).Draw(t, "between"))
			text.Write(one)
		}
		from := io.Reader(strings.NewReader(text.String()))
		switch rapid.IntRange(0, 2).Draw(t, "reader") {
		case 1:
			from = iotest.HalfReader(from)
		case 2:
			from = iotest.DataErrReader(from)
		}
		read := newStream(from)
		for i, object := range want {
			frame, err := read.object()
			if err != nil || string(frame) != object {
				t.Fatalf("object %d is read as %.200s, error %v; want %.200s", i, frame, err, object)
			}
		}
		if frame, err := read.object(); !errors.Is(err, io.EOF) {
			t.Fatalf("after the last object comes %.200s, error %v", frame, err)
		}
	})
}

func TestAStreamThatEndsWithinAnObjectOrHoldsNoneIsAnError(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":"}`:     io.ErrUnexpectedEOF.Error(),
		`{"a":{}`:     io.ErrUnexpectedEOF.Error(),
		"not found":   `invalid character 'o' in literal null (expecting 'u')`,
		`"a":{}`:      `found "a", want a JSON object`,
		"  }{}":       `invalid character '}' looking for beginning of value`,
		" \n ":        io.EOF.Error(),
		"\x00\x01{} ": `invalid character '\x00' looking for beginning of value`,
		" null ":      "found null, want a JSON object",
	} {
		frame, err := newStream(strings.NewReader(text)).object()
		if err == nil || err.Error() != want {
			t.Errorf("%q is read as %q, error %v; want %s", text, frame, err, want)
		}
	}
}

func TestAnErrorOfTheStreamIsReported(t *testing.T) {
	broken := errors.New("broken")
	read := newStream(io.MultiReader(strings.NewReader(`{"a":1}{"b"`), iotest.ErrReader(broken)))
	if frame, err := read.object(); string(frame) != `{"a":1}` || err != nil {
		t.Fatalf("it begins with %q, error %v", frame, err)
	}
	if _, err := read.object(); !errors.Is(err, broken) {
		t.Errorf("then comes error %v", err)
	}
}

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
	read.from.left = readAhead // to wait for less
	if _, err := read.object(); err == nil || !strings.Contains(err.Error(), "is longer than") {
		t.Errorf("the error is %v", err)
	}
}
