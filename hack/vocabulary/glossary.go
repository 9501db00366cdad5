package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// rule is a word, or a phrase, that is not used.
type rule struct {
	words []string // in lower case
	open  bool     // any ending of the last word matches
	use   string
}

// allowed, in place of a replacement, marks a phrase that is right although it contains a word
// that is not used.
const allowed = "allowed"

// rules by the first word of each. A rule of one open word is under "".
type rules map[string][]rule

// code is what a cell of the tables has between backquotes.
var code = regexp.MustCompile("`([^`]+)`")

// parseGlossary reads the tables of the glossary: the last column of Terms and of Terms of the
// code is replaced by the first, and the first column of Words to avoid by the second.
func parseGlossary(page string) (rules, error) {
	found := rules{}
	section, terms, avoid := "", 0, 0
	for number, line := range strings.Split(page, "\n") {
		if title, isTitle := strings.CutPrefix(line, "## "); isTitle {
			section = strings.TrimSpace(title)
			continue
		}
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		var not, use string
		switch {
		case (section == "Terms" || section == "Terms of the code") && len(cells) == 3:
			not, use = cells[2], cells[0]
			terms++
		case section == "Words to avoid" && len(cells) == 2:
			not, use = cells[0], cells[1]
			avoid++
		default:
			return nil, fmt.Errorf("line %d: a row of %d cells in section %q; the tables of terms have three columns and Words to avoid has two", number+1, len(cells), section)
		}
		for _, match := range code.FindAllStringSubmatch(not, -1) {
			if err := found.add(match[1], use); err != nil {
				return nil, fmt.Errorf("line %d: %w", number+1, err)
			}
		}
	}
	if terms == 0 || avoid == 0 {
		return nil, errors.New("the table of section Terms or of section Words to avoid is missing")
	}
	return found, nil
}

func (r rules) add(phrase, use string) error {
	text, open := strings.CutSuffix(phrase, "*")
	words := tokens(text)
	if len(words) == 0 {
		return fmt.Errorf("%q has no word", phrase)
	}
	made := rule{open: open, use: use}
	for _, w := range words {
		made.words = append(made.words, w.text)
	}
	first := made.words[0]
	if open && len(made.words) == 1 {
		first = ""
	}
	r[first] = append(r[first], made)
	return nil
}
