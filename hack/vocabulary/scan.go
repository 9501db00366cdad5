package main

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// ignore is the mark of a line that is not checked.
const ignore = "vocabulary:ignore"

// address is a URL, whose words are not ours.
var address = regexp.MustCompile(`https?://[^\s)>"` + "`" + `]+`)

// finding is a word that is not used, and what to write instead.
type finding struct {
	line       int
	words, use string
}

// token is a word of a text.
type token struct {
	text string // in lower case
	line int
	gap  string // what is between the word before and this one
}

// tokens returns the words of a text. Identifiers are split where the case changes, as in
// "jobNames" and "HTTPServer", and at everything that is not a letter.
func tokens(text string) []token {
	var found []token
	letters := []rune(text)
	line, begin, last := 1, -1, 0
	end := func(i int) {
		if begin >= 0 {
			word := strings.ToLower(string(letters[begin:i]))
			found = append(found, token{text: word, line: line, gap: string(letters[last:begin])})
			begin, last = -1, i
		}
	}
	for i, r := range letters {
		if !unicode.IsLetter(r) {
			end(i)
			if r == '\n' {
				line++
			}
			continue
		}
		if begin >= 0 && caseChanges(letters, i) {
			end(i)
		}
		if begin < 0 {
			begin = i
		}
	}
	end(len(letters))
	return found
}

// caseChanges reports whether a new word begins at i, within a run of letters.
func caseChanges(letters []rune, i int) bool {
	if !unicode.IsUpper(letters[i]) {
		return false
	}
	if !unicode.IsUpper(letters[i-1]) {
		return true
	}
	return i+1 < len(letters) && unicode.IsLower(letters[i+1])
}

// check returns what of a text the rules replace, by line.
func (r rules) check(text string) []finding {
	lines := strings.Split(text, "\n")
	words := tokens(address.ReplaceAllString(text, "."))
	var found []finding
	for i, w := range words {
		best, is := r.longest(words[i:])
		if !is || best.use == allowed || strings.Contains(lines[w.line-1], ignore) {
			continue
		}
		var seen []string
		for _, part := range words[i : i+len(best.words)] {
			seen = append(seen, part.text)
		}
		found = append(found, finding{line: w.line, words: strings.Join(seen, " "), use: best.use})
	}
	return found
}

// longest returns the longest rule that matches the beginning of these words.
func (r rules) longest(words []token) (best rule, is bool) {
	for _, candidate := range slices.Concat(r[words[0].text], r[""]) {
		if len(candidate.words) > len(best.words) && candidate.matches(words) {
			best, is = candidate, true
		}
	}
	return best, is
}

// matches reports whether a text that begins with these words begins with those of the rule.
func (r rule) matches(words []token) bool {
	if len(words) < len(r.words) {
		return false
	}
	for i, want := range r.words {
		word := words[i].text
		same := word == want || r.open && i == len(r.words)-1 && strings.HasPrefix(word, want)
		if !same || i > 0 && !joins(words[i].gap) {
			return false
		}
	}
	return true
}

// joins reports whether two words with this between them may be one phrase: blanks, a hyphen, the
// end of a line, and what begins a line of a comment or of a quotation. Nothing is between the
// words of an identifier.
func joins(gap string) bool {
	return strings.Trim(gap, " \t\r\n/#>*-") == "" && strings.Count(gap, "\n") < 2
}
